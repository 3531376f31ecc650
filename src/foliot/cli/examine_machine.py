"""What `foliot doctor` looks at on this machine, before it asks anybody."""

import shutil
import sys
from ipaddress import ip_address
from typing import Final, NamedTuple

from foliot.domain.errors import FoliotError
from foliot.kit.postgres import PostgresError, find_binaries
from foliot.kit.settings import Settings, client_file, master_file
from foliot.kit.zonedata import zone_data

_SCARCE: Final = 1 << 30
"""Bytes that a disk should have left."""
_TOO_LITTLE: Final = 100 << 20
"""Bytes without which PostgreSQL soon writes nothing any more."""


class Finding(NamedTuple):
    what: str
    ok: bool
    detail: str
    hint: str = ""
    warns: bool = False
    """It works, and somebody should know at what risk."""

    @property
    def word(self) -> str:
        return "BAD" if not self.ok else "WARN" if self.warns else "ok "


def python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    return Finding("python", ok=sys.version_info >= (3, 11), detail=version)


def zones() -> Finding:
    found = zone_data()
    hint = "install the package tzdata, or the system's" if found.source == "nowhere" else ""
    return Finding("time zones", ok=not hint, detail=f"{found.version} in {found.source}", hint=hint)


def programs(settings: Settings) -> Finding:
    if settings.database_url:
        return Finding("postgres programs", ok=True, detail="not needed: FOLIOT_DATABASE_URL is set")
    try:
        found = find_binaries(settings.postgres_bin)
    except PostgresError as error:
        return Finding("postgres programs", ok=False, detail=str(error))
    return Finding(
        "postgres programs", ok=True, detail=f"PostgreSQL {found.version[0]}.{found.version[1]} in {found.bin}"
    )


def home(settings: Settings) -> Finding:
    """Where the keys of this machine lie, as far as they are set here: nobody else may read them."""
    kept = (client_file(settings.home), master_file(settings.home), settings.home / "audit.key")
    for file in (*kept, settings.master_key_file, settings.audit_key_file):
        if file is not None and file.exists() and file.stat().st_mode & 0o077:
            return Finding("home", ok=False, detail=f"{file} can be read by others", hint=f"chmod 600 {file}")
    return Finding("home", ok=True, detail=str(settings.home))


def address(settings: Settings) -> Finding:
    """Who could reach an API that was started here."""
    detail = f"the API listens on {settings.host}, port {settings.port}"
    try:
        is_own = ip_address(settings.host).is_loopback
    except ValueError:
        is_own = settings.host == "localhost"
    if is_own:
        return Finding("address", ok=True, detail=f"{detail}: nobody else reaches it")
    hint = "nothing on it is encrypted: put a proxy with TLS before it, or unset FOLIOT_HOST"
    return Finding("address", ok=True, detail=f"{detail}: other machines may reach it", hint=hint, warns=True)


def disk(settings: Settings) -> Finding:
    """Room for the database that `foliot up` keeps here."""
    if settings.database_url:
        return Finding("disk", ok=True, detail="not ours to look at: FOLIOT_DATABASE_URL is set")
    place = next(each for each in (settings.home.absolute(), *settings.home.absolute().parents) if each.exists())
    free = shutil.disk_usage(place).free
    hint = f"make room where {place} lies" if free < _SCARCE else ""
    return Finding(
        "disk", ok=free >= _TOO_LITTLE, detail=f"{free / (1 << 30):,.1f} GiB free", hint=hint, warns=bool(hint)
    )


def trail(settings: Settings) -> Finding:
    """Whether what is sealed is signed too, so that not even the owner of the database can rewrite it unseen."""
    from foliot.cli.compose import notary_of
    from foliot.cli.home import signing

    settings = signing(settings)
    try:
        notary = notary_of(settings)
    except FoliotError as error:
        return Finding("audit trail", ok=False, detail=error.message, hint=error.hint)
    if notary is not None:
        return Finding("audit trail", ok=True, detail=f"sealed, and signed into {settings.objects}")
    hint = "set FOLIOT_OBJECTS and FOLIOT_AUDIT_KEY_FILE where schedulers run"
    return Finding("audit trail", ok=True, detail="sealed; as far as is known here, not signed", hint=hint)
