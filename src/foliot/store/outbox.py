"""Runs that came out of somebody's transaction with a spec nobody had used before: stored now, afterwards."""

from typing import Final

import msgspec

from foliot.domain.spec import Spec
from foliot.store.database import Line
from foliot.store.specs import SpecBook

BATCH: Final = 1_000


async def send_out(line: Line, specs: SpecBook) -> dict[int, str]:
    """Let them wait for their time like all others. Returns those that cannot be run, and why: they are put by."""
    waiting = [(row["id"], row["tenant"], row["body"]) for row in await line.fetch("outbox", BATCH)]
    good: dict[int, tuple[int, Spec]] = {}
    bad: dict[int, str] = {}
    for run, tenant, body in waiting:
        try:
            good[run] = tenant, _read(body)
        except (msgspec.MsgspecError, ValueError) as error:
            bad[run] = f"its spec cannot be read: {error}"
    if bad:
        await line.fetch("refuse_outbox", list(bad), list(bad.values()))
    known = {run: (await specs.intern(tenant, spec)).id for run, (tenant, spec) in good.items()}
    if known:
        await line.fetch("send_out", list(known), list(known.values()))
    return bad


def _read(body: bytes) -> Spec:
    """An older client's spec lacks what is new here, which then has its default; a newer one's may ask for more."""
    spec = Spec.parse(body)
    if unknown := msgspec.json.decode(body).keys() - msgspec.json.decode(spec.body()).keys():
        raise ValueError(f"it asks for {', '.join(sorted(unknown))}, which this release does not know")
    return spec
