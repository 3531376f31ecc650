"""Whether this worker runs commands: what the operator allows, and what the machine can hold them with."""

import os
import re
import stat
import sys
import tomllib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec
import structlog

from foliot.cli.compose import CannotStart, dsn_of
from foliot.domain.commands import CommandPolicy
from foliot.domain.errors import FoliotError
from foliot.domain.outcome import Answer
from foliot.domain.redaction import Redaction
from foliot.kit.settings import Settings, find_access
from foliot.worker.child.nursery import Nursery
from foliot.worker.commands.attendant import Attendant
from foliot.worker.commands.containers import Containers, Engine, find_engine
from foliot.worker.commands.executor import Commands
from foliot.worker.commands.folders import Folders, open_folders
from foliot.worker.commands.isolation import Isolation, account_of, probe
from foliot.worker.commands.rules import home_of_worker
from foliot.worker.executor import Assignment

log = structlog.get_logger("worker")

COMMAND, CONTAINER = "command", "container"
STAY_OFF: Final = "commands stay off: here they could only run as this worker's own user"
_FILES_OF_LIBPQ: Final = ("PGPASSFILE", "PGSERVICEFILE", "PGSSLKEY")
_SECRET: Final = re.compile(r"TOKEN|SECRET|PASS|KEY|CREDENTIAL|AUTH|DSN|URL", re.IGNORECASE)


By = Callable[[str, Assignment], Awaitable[Answer]]
"""Runs one attempt for the tenant of that name."""


@asynccontextmanager
async def open_commands(settings: Settings, nursery: Nursery) -> AsyncIterator[dict[str, By]]:
    """What runs commands and containers, by group; nothing of what nobody allows, or the machine cannot do."""
    if settings.commands is None:
        if settings.commands_same_user:
            log.warning("commands stay off: --commands-same-user says as whom, but no --commands says which")
        yield {}
        return
    policy = read_policy(settings.commands)
    with open_folders() as folders:
        attendant = Attendant(nursery, Redaction(_secrets(settings, policy)))
        found: dict[str, By] = {}
        if policy.has_commands and (isolation := await _isolation(settings, nursery, folders)) is not None:
            _check_terms(settings, policy, isolation)
            found[COMMAND] = Commands(attendant, policy, isolation, folders, list(hidden_files(settings))).execute
        if policy.has_images and (engine := await _engine()) is not None:
            found[CONTAINER] = Containers(attendant, policy, engine, folders).execute
        yield found


async def _isolation(settings: Settings, nursery: Nursery, folders: Folders) -> Isolation | None:
    isolation = await probe(nursery, folders)
    if not may_run(isolation, same_user=settings.commands_same_user):
        log.error(STAY_OFF, hint=how_to_mend(isolation), refused=isolation.refused)
        return None
    _say(isolation)
    return isolation


async def _engine() -> Engine | None:
    engine = await find_engine()
    if engine is None:
        log.warning("no containers here: neither podman nor docker answers")
    else:
        log.info("containers are run", engine=engine.program)
    return engine


def read_policy(file: Path) -> CommandPolicy:
    """What the operator allows; refused if others than its owner could have written it."""
    try:
        found = file.stat()
        policy = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), CommandPolicy)
    except (OSError, ValueError, msgspec.ValidationError) as error:
        hint = "see docs/guides/commands.md for what it may say"
        raise CannotStart(f"the file of commands cannot be used: {file}: {error}", hint) from None
    if found.st_uid not in {0, os.geteuid()} or stat.S_IMODE(found.st_mode) & 0o022:
        hint = f"chown it to root or to this user, and chmod go-w {file}"
        raise CannotStart(f"{file} says what may be run here, and others may change it", hint)
    return policy


def may_run(isolation: Isolation, *, same_user: bool) -> bool:
    """Never as root, whatever the operator says, and nowhere but on Linux."""
    return sys.platform == "linux" and (isolation.other_user or (same_user and os.geteuid() != 0))


def how_to_mend(isolation: Isolation) -> str:
    if sys.platform != "linux":
        return "run a worker for them on Linux"
    if os.geteuid() == 0:
        return f"grant CAP_SETUID, CAP_SETGID and CAP_KILL (account: {isolation.refused.get('account', 'no kill')})"
    return "start the worker as root, which it leaves for every command, or accept the risk with --commands-same-user"


def _check_terms(settings: Settings, policy: CommandPolicy, isolation: Isolation) -> None:
    """What is wrong with a place or an account is told now, not by the first run."""
    places = [
        path for terms in (policy, *policy.tenants.values()) for path in (*_of(terms.readable), *_of(terms.writable))
    ]
    if missing := [path for path in places if not Path(path).exists()]:
        raise CannotStart(
            f"commands are to see {missing[0]}, which is not there", "make it, or take it out of the file"
        )
    if not isolation.other_user:
        return
    try:
        databases = (settings.home / "postgres").stat().st_uid
    except OSError:
        databases = 0
    for terms in (policy, *policy.tenants.values()):
        if isinstance(terms.account, str) and account_of(terms.account, 0).uid == databases:
            raise CannotStart(
                f"commands cannot run as {terms.account!r}: the database's files belong to it", "name another account"
            )


def _of(paths: tuple[str, ...] | msgspec.UnsetType) -> tuple[str, ...]:
    return () if isinstance(paths, msgspec.UnsetType) else paths


def _say(isolation: Isolation) -> None:
    if isolation.other_user:
        log.info("commands run as users of their own", walls=isolation.summary)
    else:
        log.warning("commands run as this worker's own user and may do what it may", walls=isolation.summary)
    if isolation.refused:
        log.warning("some walls around commands cannot be had here", **isolation.refused)


def own_secrets(settings: Settings) -> Iterator[str]:
    """What must not be in an error, should a handler come to know it: how we reach the database, and our key."""
    access = find_access(os.environ)
    try:
        dsn = dsn_of(settings)
        yield from (dsn, unquote(urlsplit(dsn).password or ""))
    except FoliotError:
        pass  # a worker at a distance knows none
    if access is not None:
        yield access.key
    if settings.master_key is not None:
        yield settings.master_key


def hidden_files(settings: Settings) -> Iterator[str]:
    """What commands find nothing in the place of: where keys and passwords are, ours and those of the worker's user."""
    yield from (str(settings.home), home_of_worker())
    yield from (str(each) for each in (settings.commands, settings.master_key_file) if each is not None)
    yield from (os.environ[name] for name in _FILES_OF_LIBPQ if os.environ.get(name))
    try:
        options = dict(parse_qsl(urlsplit(dsn_of(settings)).query))
    except FoliotError:
        return  # as above
    yield from (options[name] for name in ("passfile", "servicefile", "sslkey") if options.get(name))


def _secrets(settings: Settings, policy: CommandPolicy) -> Iterator[str]:
    """Ours, and what the operator gave to commands to use."""
    yield from own_secrets(settings)
    for terms in (policy, *policy.tenants.values()):
        yield from (value for name, value in terms.environment.items() if _SECRET.search(name))
