"""How the server is set: for a queue on a small machine, with nothing that could lose a commit."""

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

MB: Final = 1 << 20
GB: Final = 1 << 30
ROOMY_DISK: Final = 40 * GB

DURABLE: Final = ("fsync", "synchronous_commit", "full_page_writes")
OWNED: Final = frozenset(
    {
        "cluster_name",
        "config_file",
        "data_directory",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "port",
        "unix_socket_directories",
    }
)
DEFAULTS: Final = MappingProxyType(
    dict.fromkeys(DURABLE, "on")
    | {
        "max_connections": "120",
        "huge_pages": "try",
        "jit": "off",  # compiling costs more than our short statements
        "wal_buffers": "64MB",  # just after a checkpoint whole pages go there, and a disk may stand still for a second
        # The wheel's build knows only pglz, whose cost is paid inside commits, and CPU is what a small machine lacks;
        # rare checkpoints already keep full-page images rare.
        "wal_compression": "off",
        "checkpoint_timeout": "15min",
        "checkpoint_completion_target": "0.9",
        # Queue tables turn over in seconds: vacuum often and without pauses, or dead rows slow every claim.
        "autovacuum_naptime": "10s",
        "autovacuum_vacuum_cost_delay": "0",
        "idle_in_transaction_session_timeout": "60s",
        "track_io_timing": "off",
        "log_min_messages": "warning",
        "log_lock_waits": "on",
        "password_encryption": "scram-sha-256",
        "TimeZone": "UTC",
        "log_timezone": "UTC",
    }
)


def check_settings(settings: Mapping[str, str]) -> None:
    """Raise ValueError for what would lose commits, or take the server out of its launcher's hands."""
    for given, value in settings.items():
        if not re.fullmatch(r"[A-Za-z_][\w.-]*", given, re.ASCII):
            raise ValueError(f"{given!r} is no name of a PostgreSQL setting")
        name = _plain(given)
        if name in OWNED:
            raise ValueError(f"{given} belongs to the launcher: for a server of your own set FOLIOT_DATABASE_URL")
        if name in DURABLE and value.strip().lower() != "on":
            raise ValueError(f"{given} must stay on: acknowledged means on disk")


def arguments(data: Path, socket: Path, settings: Mapping[str, str]) -> list[str]:
    """Return the server's command line options; they overrule its configuration files and ALTER SYSTEM."""
    chosen = {_plain(name): value for name, value in {**DEFAULTS, **_measured(data), **settings}.items()}
    # Inside a list of folders a comma separates and quotes hold together.
    quoted = '"' + str(socket).replace('"', '""') + '"'
    chosen |= {"listen_addresses": "", "port": "5432", "unix_socket_directories": quoted}
    # Shown in the title of every process of the server: by it orphans are found.
    chosen |= {"cluster_name": socket.name}
    return [word for name, value in chosen.items() for word in ("-c", f"{name}={value}")]


def _plain(name: str) -> str:
    # The server takes names in any case, and dashes for underscores.
    return name.lower().replace("-", "_")


def _measured(data: Path) -> dict[str, str]:
    roomy = shutil.disk_usage(data).free >= ROOMY_DISK
    buffers = max(128 * MB, min(_memory() // 4, 2 * GB))
    return {
        "shared_buffers": f"{buffers // MB}MB",
        "max_wal_size": "8GB" if roomy else "2GB",
        "min_wal_size": "1GB" if roomy else "256MB",
    }


def _memory() -> int:
    """Return the bytes of memory we may use: the machine's, or the container's if that is less."""
    known = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            known.append(int(Path(limit).read_text()))
        except (OSError, ValueError):  # no such control group, or "max"
            continue
    return min(known)
