"""Operations for workers that have only a URL and a key."""

from functools import partial

from foliot.api.operation import Call, Operation, Reply
from foliot.api.reading import LARGE
from foliot.services.gateway import Bearer
from foliot.wire.reports import ReportAnswer, ReportBody
from foliot.wire.work import (
    ClaimAnswer,
    ClaimBody,
    Heartbeat,
    HeartbeatAnswer,
    LookAnswer,
    LookBody,
    SecretsAnswer,
    SecretsBody,
    SettleAnswer,
    SettleBody,
)


def bearer(call: Call) -> Bearer:
    return Bearer(call.tenant.key, call.tenant.serves, partial(_is_good, call))


async def _is_good(call: Call) -> bool:
    """As believed as at the door: for some seconds after it was looked up, and no longer."""
    return await call.services.tenants.whose(call.token) is not None


async def heartbeat(call: Call) -> Reply:
    return Reply(await call.services.gateway.heartbeat(bearer(call), call.body))


async def claim(call: Call) -> Reply:
    return Reply(await call.services.gateway.claim(bearer(call), call.body, call.gone))


async def settle(call: Call) -> Reply:
    return Reply(await call.services.gateway.settle(bearer(call), call.body))


async def report(call: Call) -> Reply:
    return Reply(await call.services.gateway.report(bearer(call), call.body))


async def look(call: Call) -> Reply:
    return Reply(await call.services.gateway.look(bearer(call), call.body))


async def secrets(call: Call) -> Reply:
    return Reply(await call.services.gateway.secrets(bearer(call), call.body))


OPERATIONS = (
    Operation(
        name="heartbeat",
        method="POST",
        path="/v1/work/heartbeat",
        scope="work",
        summary="Register a worker, renew its lease, say which runs have begun, or say good-bye",
        handler=heartbeat,
        body=Heartbeat,
        result=HeartbeatAnswer,
    ),
    Operation(
        name="claimWork",
        method="POST",
        path="/v1/work/claim",
        scope="work",
        summary="Wait for work and take up to 800 runs of it",
        handler=claim,
        body=ClaimBody,
        result=ClaimAnswer,
        largest_body=LARGE,
    ),
    Operation(
        name="settleWork",
        method="POST",
        path="/v1/work/settle",
        scope="work",
        summary="Tell how attempts ended",
        handler=settle,
        body=SettleBody,
        result=SettleAnswer,
        largest_body=LARGE,
    ),
    Operation(
        name="reportWork",
        method="POST",
        path="/v1/work/report",
        scope="work",
        summary="Tell how far attempts are, keep their checkpoints, and read the last one of a run",
        handler=report,
        body=ReportBody,
        result=ReportAnswer,
        largest_body=LARGE,
    ),
    Operation(
        name="lookAtProcesses",
        method="POST",
        path="/v1/work/look",
        scope="work",
        summary="See how many processes of a machine have work in hand, and how much waits for them",
        handler=look,
        body=LookBody,
        result=LookAnswer,
    ),
    Operation(
        name="readSecrets",
        method="POST",
        path="/v1/work/secrets",
        scope="work",
        summary="Read the secrets that a run refers to, which this worker holds and is about to begin",
        handler=secrets,
        body=SecretsBody,
        result=SecretsAnswer,
    ),
)
