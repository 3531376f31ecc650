"""Which secrets a remote worker may know: those to which a run refers that it holds, and no others of the tenant."""

from foliot.domain.ids import decode
from foliot.store.database import Line
from foliot.store.secrets import held_run
from foliot.store.vault import NO_VAULT, Vault
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
        meant = (await held.opened(self._vault, run)).names
        return SecretsAnswer(await self._vault.secrets(held.tenant, meant.intersection(body.names)))
