"""Runs that came out of somebody's transaction with a new spec, or under a limit: stored now, afterwards."""

from typing import Final

import msgspec

from foliot.domain.errors import InvalidField
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
    keys, lacking = await _limit_keys(line, {run: spec for run, (_, spec) in good.items()})
    bad |= lacking
    if bad:
        await line.fetch("refuse_outbox", list(bad), list(bad.values()))
    known = {run: (await specs.intern(tenant, spec)).id for run, (tenant, spec) in good.items() if run not in lacking}
    if known:
        await line.fetch("send_out", list(known), list(known.values()), [keys.get(run) for run in known])
    return bad


async def _limit_keys(line: Line, specs: dict[int, Spec]) -> tuple[dict[int, int | None], dict[int, str]]:
    """Of runs whose limit has a key, which others each counts together with; and why that cannot be said of some."""
    keyed = [run for run, spec in specs.items() if spec.limit_path is not None]
    keys: dict[int, int | None] = {}
    lacking: dict[int, str] = {}
    for row in await line.fetch("outbox_payloads", keyed) if keyed else ():
        try:
            keys[row["id"]] = specs[row["id"]].key_of(row["payload"])
        except InvalidField as error:
            lacking[row["id"]] = f"its {error}"
    return keys, lacking


def _read(body: bytes) -> Spec:
    """An older client's spec lacks what is new here, which then has its default; a newer one's may ask for more."""
    spec = Spec.parse(body)
    if unknown := msgspec.json.decode(body).keys() - msgspec.json.decode(spec.body()).keys():
        raise ValueError(f"it asks for {', '.join(sorted(unknown))}, which this release does not know")
    return spec
