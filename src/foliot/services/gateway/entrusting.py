"""Which secrets a remote worker may know: those to which a run refers that it holds, and no others of the tenant."""

from collections.abc import Iterator

import msgspec

from foliot.domain.ids import decode
from foliot.domain.secret import names_in
from foliot.store.database import Line
from foliot.store.sealed import PAYLOAD, TARGET
from foliot.store.secrets import HeldRun, held_run
from foliot.store.vault import NO_VAULT, Owner, Vault
from foliot.wire.work import SecretsAnswer, SecretsBody


class Entrusting:
    def __init__(self, line: Line, vault: Vault = NO_VAULT) -> None:
        self._line = line
        self._vault = vault

    async def secrets(self, worker: int, body: SecretsBody) -> SecretsAnswer:
        run = decode("run", body.run_id)
        held = await held_run(self._line, worker, run, body.fence)
        if held is None:
            return SecretsAnswer({}, held=False)
        owner = Owner(held.tenant, run, held.job)
        payload = await self._vault.opened(owner, PAYLOAD, held.payload)
        target = None if held.target is None else await self._vault.opened(owner, TARGET, held.target)
        meant = set(_names(held._replace(payload=payload, target=target)))
        return SecretsAnswer(await self._vault.secrets(held.tenant, meant.intersection(body.names)))


def _names(held: HeldRun) -> Iterator[str]:
    for text in (held.payload, held.target, held.spec):
        if text is not None and b"$secret" in text:
            yield from names_in(msgspec.json.decode(text))
