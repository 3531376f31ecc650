"""What `foliot doctor` looks at."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from foliot.cli import examine_machine as machine
from foliot.cli.examine_machine import Finding
from foliot.domain.egress import DEVELOPING
from foliot.domain.errors import FoliotError
from foliot.kit.settings import Settings
from foliot.kit.zonedata import UNKNOWN, zone_data

TOLERATED: Final = timedelta(seconds=5)
"""By which the database's clock may be behind what it has told before."""
APART: Final = timedelta(seconds=2)
"""By which this machine's clock and the database's may differ."""


async def examine(settings: Settings) -> list[Finding]:
    database = await _guarded("database", lambda: _database(settings))
    zones = await _guarded("time zones", lambda: _recorded_zones(settings)) if database.ok else machine.zones()
    findings = [
        machine.python(),
        zones,
        machine.programs(settings),
        machine.home(settings),
        machine.disk(settings),
        machine.trail(settings),
        machine.address(settings),
        await _targets(settings),
        database,
    ]
    if database.ok:
        findings.append(await _clock(settings))
        findings.append(await _row_security(settings))
        findings.append(await _guarded("encryption", lambda: _encryption(settings)))
        findings.append(await _guarded("schedulers", lambda: _schedulers(settings)))
        findings.append(await _guarded("workers", lambda: _workers(settings)))
    findings.append(await _guarded("api", _api))
    return [*findings, *await _commands(settings)]


async def _guarded(what: str, look: Callable[[], Awaitable[str]]) -> Finding:
    try:
        return Finding(what, ok=True, detail=await look())
    except FoliotError as error:
        return Finding(what, ok=False, detail=error.message, hint=error.hint)
    except Exception as error:  # noqa: BLE001 - a doctor reports, whatever it finds
        return Finding(what, ok=False, detail=f"{type(error).__name__}: {error}")


async def _clock(settings: Settings) -> Finding:
    """The database's clock decides what is due; this one misleads whoever types instants here."""
    from foliot.cli.compose import dsn_of
    from foliot.store.database import Database

    database = await Database.open(dsn_of(settings), size=1)
    try:
        before = datetime.now(UTC)
        there = await database.fetchval("clock")
        after = datetime.now(UTC)
    finally:
        await database.close()
    apart = max(before - there, there - after, timedelta())
    hint = "let both machines ask the same time source" if apart > APART else ""
    detail = f"{apart.total_seconds():,.1f} s from the database's"
    return Finding("clock", ok=True, detail=detail, hint=hint, warns=bool(hint))


async def _row_security(settings: Settings) -> Finding:
    """That it is missing is worth saying, and no fault: not everybody may make roles."""
    from foliot.cli.compose import dsn_of
    from foliot.store.database import API_ROLE, Database

    database = await Database.open(dsn_of(settings), size=1)
    try:
        is_on = await database.fetchval("may_be_guarded", API_ROLE)
        user = await database.fetchval("who_am_i")
    finally:
        await database.close()
    if is_on:
        return Finding("row level security", ok=True, detail=f"on: the API acts as {API_ROLE}")
    hint = f"as an administrator: CREATE ROLE {API_ROLE} NOLOGIN; GRANT {API_ROLE} TO {user}; then `foliot migrate`"
    detail = "off: tenants are kept apart by queries alone"
    if not settings.one_wall:
        detail += ", so the API refuses to listen to other machines"
    return Finding("row level security", ok=True, detail=detail, hint=hint, warns=True)


async def _encryption(settings: Settings) -> str:
    """That our master key is the right one, and that what should be encrypted is."""
    from foliot.cli.compose import dsn_of, master_of
    from foliot.store import keyring
    from foliot.store.database import Database
    from foliot.store.vault import Vault

    database = await Database.open(dsn_of(settings), size=1)
    try:
        master = master_of(settings)
        used = await Vault(database, master).check()
        on = [row for row in await keyring.how_sealed(database) if row.sealed_with is not None]
        looked_at, plain = await keyring.plain_among_newest(database, [row.tenant for row in on])
    finally:
        await database.close()
    if used is None:
        return "of nothing yet; a master key is set" if master else "of nothing yet, and no master key is set"
    if plain:
        hint = "`foliot operation list` with a key of the tenant tells how far the encryption of what was stored is"
        raise FoliotError(f"{plain:,} of {looked_at:,} payloads that should be encrypted are not", hint)
    return f"payloads of {len(on)} tenants, {looked_at:,} looked at; the canary opens with {used}"


async def _recorded_zones(settings: Settings) -> str:
    """What this machine has beside what the schedulers go by."""
    from foliot.cli.compose import dsn_of
    from foliot.store import zones
    from foliot.store.database import Database

    here = machine.zones()
    if not here.ok:
        raise FoliotError(here.detail, here.hint)
    database = await Database.open(dsn_of(settings), size=1)
    try:
        recorded = await zones.latest(database)
    finally:
        await database.close()
    if recorded is None:
        return f"{here.detail}; no scheduler has recorded one yet"
    if zone_data().version not in {UNKNOWN, recorded.version} and zone_data().version < recorded.version:
        raise FoliotError(
            f"{here.detail}; the schedulers go by {recorded.version}",
            "upgrade the time zone data of this machine, and restart what runs on it",
        )
    return f"{here.detail}; the schedulers go by {recorded.version}"


async def _targets(settings: Settings) -> Finding:
    """As it is set here; workers elsewhere may have been told otherwise."""
    from foliot.cli.compose import egress_of

    async def allowed() -> str:
        usual = "" if settings.http_allow else f" (what `foliot up` starts: {', '.join(DEVELOPING)})"
        return f"HTTP handlers may call {egress_of(settings)}{usual}"

    return await _guarded("http targets", allowed)


async def _database(settings: Settings) -> str:
    from foliot.cli.compose import dsn_of
    from foliot.services.health import Health
    from foliot.store.database import Database

    database = await Database.open(dsn_of(settings), size=1)
    try:
        health = Health(database)
        await health.check_server()
        await health.check()
    finally:
        await database.close()
    return "reachable, durable, schema up to date"


async def _schedulers(settings: Settings) -> str:
    from foliot.cli.compose import dsn_of
    from foliot.domain.shards import SHARDS
    from foliot.store import members
    from foliot.store.database import Database

    database = await Database.open(dsn_of(settings), size=1)
    try:
        behind = await members.clock_behind(database)
        found = await members.schedulers(database)
    finally:
        await database.close()
    if behind > TOLERATED:
        raise FoliotError(
            f"the database's clock was set back and is {behind.total_seconds():,.0f} s behind what has been fired",
            "nothing fires until it has caught up: look at the time source of the database's machine",
        )
    if not found:
        return "none runs, so nothing fires: start `foliot scheduler`"
    each = (f"{row.name} looks after {row.shards} of {SHARDS} shards (epoch {row.epoch})" for row in found)
    return "; ".join(each)


async def _workers(settings: Settings) -> str:
    from foliot.cli.compose import dsn_of
    from foliot.store import roster
    from foliot.store.database import Database

    database = await Database.open(dsn_of(settings), size=1)
    try:
        found = await roster.gauges(database)
        queues = await roster.list_queues(database, limit=500)
    finally:
        await database.close()
    unserved = [f"{handler} on {queue.name}" for queue in queues for handler in queue.unserved]
    if unserved and found.live:
        raise FoliotError(
            f"runs wait that no live worker offers to run: {', '.join(unserved[:5])}{' …' if unserved[5:] else ''}",
            "start a worker that has them, with --queue if the queue is not `default`, and --label for what stands"
            " behind `with`; `foliot queue list` shows all",
        )
    if not found.live:
        return "none lives, so nothing runs: start `foliot worker`"
    return f"{found.live} live, {found.draining} being drained, {found.paused_queues} queues paused"


async def _commands(settings: Settings) -> list[Finding]:
    """What a worker that was started here, by this user and with these settings, would do."""
    from foliot.cli.commands import read_policy

    if settings.commands is None:
        return [Finding("commands", ok=True, detail="off: FOLIOT_COMMANDS names no file that allows any")]
    try:
        policy = read_policy(settings.commands)
        found = [await _walls(settings)] if policy.has_commands else []
        return [*found, *([await _engine()] if policy.has_images else [])]
    except (FoliotError, OSError) as error:
        return [Finding("commands", ok=False, detail=str(error), hint=getattr(error, "hint", ""))]


async def _walls(settings: Settings) -> Finding:
    from foliot.cli.commands import STAY_OFF, how_to_mend, may_run
    from foliot.worker.child.nursery import open_nursery
    from foliot.worker.commands.folders import open_folders
    from foliot.worker.commands.isolation import probe

    async with open_nursery() as nursery:
        with open_folders() as folders:
            found = await probe(nursery, folders)
    if not may_run(found, same_user=settings.commands_same_user):
        return Finding("commands", ok=False, detail=STAY_OFF, hint=how_to_mend(found))
    if not found.other_user:
        detail = f"run as the worker's own user, and may read and stop whatever it may; {found.summary}"
        return Finding("commands", ok=True, detail=detail, hint=how_to_mend(found), warns=True)
    hint = "run the worker where the kernel lets root have namespaces (CAP_SYS_ADMIN)" if found.refused else ""
    return Finding("commands", True, f"run as users of their own; {found.summary}", hint, warns=bool(found.refused))


async def _engine() -> Finding:
    from foliot.worker.commands.containers import ENGINES, find_engine

    engine = await find_engine()
    if engine is None:
        hint = "start one, or take `images` out of the file"
        return Finding("containers", ok=False, detail=f"none of {', '.join(ENGINES)} answers here", hint=hint)
    return Finding("containers", ok=True, detail=f"run by {engine.program}")


async def _api() -> str:
    from foliot.sdk import AsyncFoliot
    from foliot.sdk.protocol import access_or_fail

    access = access_or_fail(None, None)
    async with AsyncFoliot(access.url, access.key, timeout=5) as client:
        await client.list_jobs(limit=1)
    return f"{access.url} answers, the key is valid"
