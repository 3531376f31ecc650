"""Where a process finds its settings: read once from the environment, at the edge."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

import msgspec

DEFAULT_PORT: Final = 7070


class Settings(NamedTuple):
    """Everything that can be set from outside. Each one is described in docs/reference/settings.md."""

    home: Path
    """FOLIOT_HOME: data, logs and the local client's key."""
    database_url: str | None
    """FOLIOT_DATABASE_URL: a PostgreSQL of your own instead of the embedded one."""
    host: str
    """FOLIOT_HOST: the address the API listens on."""
    port: int
    """FOLIOT_PORT: the port the API listens on."""
    trusted_proxies: tuple[IPv4Network | IPv6Network, ...]
    """FOLIOT_TRUSTED_PROXIES: addresses and networks whose X-Forwarded-For is believed, separated by commas."""
    one_wall: bool
    """FOLIOT_ONE_WALL: 1 to let other machines reach the API though the database does not keep tenants apart."""
    metrics_port: int | None
    """FOLIOT_METRICS_PORT: where a scheduler or worker shows its metrics; the API shows its own at /metrics."""
    log_level: str
    """FOLIOT_LOG_LEVEL: debug, info, warning or error."""
    log_json: bool
    """FOLIOT_LOG_JSON: 1 for one JSON object per line."""
    postgres_bin: Path | None
    """FOLIOT_POSTGRES_BIN: folder of the PostgreSQL programs to embed."""
    postgres_account: str | None
    """FOLIOT_POSTGRES_ACCOUNT: the account that the embedded server runs under when started by root."""

    commands: Path | None
    """FOLIOT_COMMANDS: the file in which an operator says which commands a worker may run, for whom, and how."""
    commands_same_user: bool
    """FOLIOT_COMMANDS_SAME_USER: 1 to run commands as the worker's own user where no other can be had."""

    labels: tuple[str, ...]
    """FOLIOT_LABELS: what a worker carries, separated by commas: it takes runs, too, that require some of these."""
    http_allow: tuple[str, ...]
    """FOLIOT_HTTP_ALLOW: what HTTP handlers may call, separated by commas; empty for what is usual."""
    http_deny: tuple[str, ...]
    """FOLIOT_HTTP_DENY: what HTTP handlers may not call, whatever is allowed."""
    objects: str | None
    """FOLIOT_OBJECTS: where objects are kept outside of the database: a folder, or s3://bucket/prefix."""
    audit_key_file: Path | None
    """FOLIOT_AUDIT_KEY_FILE: the file with the keys that sign the audit trail, one a line; the first signs."""
    master_key: str | None
    """FOLIOT_MASTER_KEY: the master key itself, where a file cannot be had; it wraps the keys that encrypt payloads."""
    master_key_file: Path | None
    """FOLIOT_MASTER_KEY_FILE: the file with the master keys, one a line; the first wraps, the others still unwrap."""
    http_per_host: int
    """FOLIOT_HTTP_PER_HOST: most calls at once of one worker process to the same host and port; 0 for no limit."""
    tenant_rate: int
    """FOLIOT_TENANT_RATE: calls a second of tenants that have no limit of their own; 0 for any number."""
    tenant_backlog: int
    """FOLIOT_TENANT_BACKLOG: runs of one tenant that may wait before the API takes no more of its; 0 for any number."""
    backlog: int
    """FOLIOT_BACKLOG: runs of all tenants that may wait before the API takes no more; 0 for any number."""
    catch_up_rate: float
    """FOLIOT_CATCH_UP_RATE: runs of late instants that a scheduler makes a second, after an outage."""
    dead_letter_days: int
    """FOLIOT_DEAD_LETTER_DAYS: how long dead letters are kept for somebody to decide."""
    handler_connections: int
    """FOLIOT_HANDLER_CONNECTIONS: most connections that handlers of one worker have for `ctx.transaction()`."""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Self:
        level = environment.get("FOLIOT_LOG_LEVEL", "info").lower()
        if level not in {"debug", "info", "warning", "error"}:
            raise ValueError(f"FOLIOT_LOG_LEVEL={level}: use debug, info, warning or error")
        metrics = environment.get("FOLIOT_METRICS_PORT")
        return cls(
            home=Path(environment.get("FOLIOT_HOME") or ".foliot").absolute(),
            database_url=environment.get("FOLIOT_DATABASE_URL") or None,
            host=environment.get("FOLIOT_HOST") or "127.0.0.1",
            port=_port("FOLIOT_PORT", environment.get("FOLIOT_PORT") or str(DEFAULT_PORT)),
            trusted_proxies=_networks("FOLIOT_TRUSTED_PROXIES", environment.get("FOLIOT_TRUSTED_PROXIES", "")),
            one_wall=environment.get("FOLIOT_ONE_WALL", "") == "1",
            metrics_port=_port("FOLIOT_METRICS_PORT", metrics) if metrics else None,
            log_level=level,
            log_json=environment.get("FOLIOT_LOG_JSON", "") == "1",
            postgres_bin=_path(environment.get("FOLIOT_POSTGRES_BIN")),
            postgres_account=environment.get("FOLIOT_POSTGRES_ACCOUNT") or None,
            commands=_path(environment.get("FOLIOT_COMMANDS")),
            commands_same_user=environment.get("FOLIOT_COMMANDS_SAME_USER", "") == "1",
            labels=_list(environment.get("FOLIOT_LABELS", "")),
            http_allow=_list(environment.get("FOLIOT_HTTP_ALLOW", "")),
            http_deny=_list(environment.get("FOLIOT_HTTP_DENY", "")),
            objects=environment.get("FOLIOT_OBJECTS") or None,
            audit_key_file=_path(environment.get("FOLIOT_AUDIT_KEY_FILE")),
            master_key=environment.get("FOLIOT_MASTER_KEY") or None,
            master_key_file=_path(environment.get("FOLIOT_MASTER_KEY_FILE")),
            http_per_host=_whole("FOLIOT_HTTP_PER_HOST", environment.get("FOLIOT_HTTP_PER_HOST") or "0"),
            tenant_rate=_whole("FOLIOT_TENANT_RATE", environment.get("FOLIOT_TENANT_RATE") or "0"),
            tenant_backlog=_whole("FOLIOT_TENANT_BACKLOG", environment.get("FOLIOT_TENANT_BACKLOG") or "1000000"),
            backlog=_whole("FOLIOT_BACKLOG", environment.get("FOLIOT_BACKLOG") or "10000000"),
            catch_up_rate=_rate("FOLIOT_CATCH_UP_RATE", environment.get("FOLIOT_CATCH_UP_RATE") or "2000"),
            dead_letter_days=_days("FOLIOT_DEAD_LETTER_DAYS", environment.get("FOLIOT_DEAD_LETTER_DAYS") or "90"),
            handler_connections=_count(
                "FOLIOT_HANDLER_CONNECTIONS", environment.get("FOLIOT_HANDLER_CONNECTIONS") or "5"
            ),
        )


def _port(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) < 65_536):
        raise ValueError(f"{name}={text}: a port is a number from 0 to 65535")
    return int(text)


def _count(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise ValueError(f"{name}={text}: a number above 0")
    return int(text)


def _whole(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ValueError(f"{name}={text}: a whole number, 0 or more")
    return int(text)


def _rate(name: str, text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not rate > 0:
        raise ValueError(f"{name}={text}: a number of runs a second, above 0; inf for no limit")
    return rate


def _days(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 36_500):
        raise ValueError(f"{name}={text}: a number of days from 1 to 36500")
    return int(text)


def _networks(name: str, text: str) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(map(ip_network, _list(text)))
    except ValueError as error:
        raise ValueError(f"{name}: {error}; write addresses or networks, such as 10.0.0.5, 10.1.0.0/16") from None


def _list(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None


class Access(msgspec.Struct, frozen=True):
    """How a client reaches Foliot."""

    url: str
    key: str


def client_file(home: Path) -> Path:
    """Where `foliot up` leaves the address and key for clients on the same machine."""
    return home / "client.json"


def master_file(home: Path) -> Path:
    """Where `foliot up` keeps the master key that it made."""
    return home / "master.key"


def find_access(environment: Mapping[str, str]) -> Access | None:
    """FOLIOT_URL and FOLIOT_KEY, or what `foliot up` left in FOLIOT_HOME, or of either one what the other lacks."""
    url, key = environment.get("FOLIOT_URL"), environment.get("FOLIOT_KEY")
    if url and key:
        return Access(url.rstrip("/"), key)
    path = client_file(Path(environment.get("FOLIOT_HOME") or ".foliot"))
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Access)
    except (OSError, msgspec.MsgspecError):
        return None
    if key and not url and not environment.get("FOLIOT_HOME") and not _is_here(found.url):
        return None  # a folder that somebody else made must not learn our key
    return Access((url or found.url).rstrip("/"), key or found.key)


def _is_here(url: str) -> bool:
    """Whether an address is on this machine, as `foliot up` writes it."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
