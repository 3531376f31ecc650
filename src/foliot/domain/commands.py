"""Which commands and containers an operator lets each tenant run on a worker, and under what terms."""

import fnmatch
import posixpath
from collections.abc import Mapping, Sequence
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.domain.errors import InvalidField

ANYBODY: Final = "*"
"""Stands for every tenant that has no table of its own; in `allow`, for every program."""
SEARCHED: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for that are named without a folder, unless the operator sets PATH."""

T = TypeVar("T")
Count = Annotated[int, Meta(ge=1, le=2**40)]
Path = Annotated[str, Meta(pattern=r"^/[^\x00]*$")]
Name = Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=200)]
Text = Annotated[str, Meta(pattern=r"^[^\x00]*$", max_length=32_768)]


class Limits(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """What each process of a command gets at most; `processes` counts all that its account has."""

    memory_mib: Count = 8_192
    processes: Count = 256
    open_files: Count = 1_024
    file_size_mib: Count = 1_024
    cpu_seconds: Count | None = None

    @property
    def by_name(self) -> dict[str, int]:
        """As the system calls them; sizes in bytes."""
        named = {
            "AS": self.memory_mib << 20,
            "NPROC": self.processes,
            "NOFILE": self.open_files,
            "FSIZE": self.file_size_mib << 20,
            "CORE": 0,
        }
        return named if self.cpu_seconds is None else {**named, "CPU": self.cpu_seconds}


class Terms(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """How commands are run. What is left out of a tenant's terms is as in the policy's own."""

    account: str | UnsetType = UNSET
    network: bool | UnsetType = UNSET
    readable: tuple[Path, ...] | UnsetType = UNSET
    writable: tuple[Path, ...] | UnsetType = UNSET
    limits: Limits | UnsetType = UNSET
    environment: dict[Name, Text] = {}


class TenantTerms(Terms, frozen=True, rename="kebab", forbid_unknown_fields=True):
    allow: tuple[str | tuple[str, ...], ...] = ()
    images: tuple[str, ...] = ()


class Rights(msgspec.Struct, frozen=True):
    """What one tenant may run, and how."""

    allow: tuple[tuple[str, ...], ...]
    images: tuple[str, ...]
    account: str | None
    network: bool
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    limits: Limits
    environment: Mapping[str, str]

    def allows(self, program: str, argv: Sequence[str]) -> bool:
        """Whether the file `program` may be executed as `argv`.

        An entry is a program, and the first arguments that it must be given, if any. A `*` in a program stands for
        part of a file's name, never for a folder; in an argument it is a star.
        """
        if not program.startswith("/") or program != posixpath.normpath(program):
            return False
        return any(_names(entry[0], program) and tuple(argv[1 : len(entry)]) == entry[1:] for entry in self.allow)

    def allows_image(self, image: str) -> bool:
        """A `*` in an entry stands for anything, also for several parts of a name."""
        return any(fnmatch.fnmatchcase(image, entry) for entry in self.images)


class CommandPolicy(Terms, frozen=True, rename="kebab", forbid_unknown_fields=True):
    """An operator's word: nothing of it can be set by who writes a job."""

    tenants: dict[str, TenantTerms] = {}

    def __post_init__(self) -> None:
        if not (self.has_commands or self.has_images):
            hint = '[tenants.NAME] with allow = ["/usr/local/bin/report"]; NAME may be "*" for all of them'
            raise InvalidField("tenants", "nobody may run anything", hint)
        for name, terms in self.tenants.items():
            for place, entry in enumerate(terms.allow):
                _check(entry, f"tenants.{name}.allow[{place}]")

    @property
    def has_commands(self) -> bool:
        return any(terms.allow for terms in self.tenants.values())

    @property
    def has_images(self) -> bool:
        return any(terms.images for terms in self.tenants.values())

    def of(self, tenant: str) -> Rights | None:
        """What this tenant may run; none if nothing."""
        own = self.tenants.get(tenant) or self.tenants.get(ANYBODY)
        if own is None or not (own.allow or own.images):
            return None
        return Rights(
            allow=tuple((entry,) if isinstance(entry, str) else entry for entry in own.allow),
            images=own.images,
            account=_first(own.account, self.account, None),
            network=_first(own.network, self.network, False),
            readable=_first(own.readable, self.readable, ()),
            writable=_first(own.writable, self.writable, ()),
            limits=_first(own.limits, self.limits, Limits()),
            environment={"PATH": SEARCHED, "LANG": "C.UTF-8", **self.environment, **own.environment},
        )


def _names(entry: str, program: str) -> bool:
    if entry == ANYBODY:
        return True
    folder, name = posixpath.split(entry)
    return folder == posixpath.dirname(program) and fnmatch.fnmatchcase(posixpath.basename(program), name)


def _check(entry: str | tuple[str, ...], field: str) -> None:
    program = entry if isinstance(entry, str) else entry[0] if entry else ""
    if program == ANYBODY:
        return
    if not program.startswith("/") or program != posixpath.normpath(program) or "*" in posixpath.dirname(program):
        hint = 'a whole path such as "/usr/local/bin/report", "/srv/jobs/*" for all in a folder, or "*" for everything'
        raise InvalidField(field, f"{program[:80]!r} names no program", hint)


def _first(*values: T | UnsetType) -> T:
    return next(value for value in values if not isinstance(value, UnsetType))
