"""Who may do what: scopes, the roles that bundle them, and who may hand which of them on."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from foliot.domain.bucket import RateLimit
from foliot.domain.errors import Forbidden, InvalidField


class Scope(StrEnum):
    """What an operation may need. Each needs exactly one."""

    JOBS_READ = "jobs:read"
    JOBS_WRITE = "jobs:write"
    RUNS_READ = "runs:read"
    RUNS_WRITE = "runs:write"
    CALENDARS_READ = "calendars:read"
    CALENDARS_WRITE = "calendars:write"
    TENANTS_READ = "tenants:read"
    TENANTS_WRITE = "tenants:write"
    SECRETS_READ = "secrets:read"
    SECRETS_WRITE = "secrets:write"
    KEYS_READ = "keys:read"
    KEYS_WRITE = "keys:write"
    AUDIT_READ = "audit:read"
    FLEET_READ = "fleet:read"
    FLEET_WRITE = "fleet:write"
    WORK = "work"
    """Fetching and settling runs. It comes with the queues that a key serves, and in no other way."""


class Role(StrEnum):
    """What a key is for. Later ones may do all that earlier ones may."""

    WORKER = "worker"
    VIEWER = "viewer"
    EDITOR = "editor"
    ADMIN = "admin"
    OPERATOR = "operator"

    def is_above(self, other: "Role") -> bool:
        """Words compare by their letters, and roles by their place in this list."""
        return _PLACES[self] > _PLACES[other]


_PLACES: Final = MappingProxyType({role: place for place, role in enumerate(Role)})
_VIEWER: Final = frozenset({Scope.JOBS_READ, Scope.RUNS_READ, Scope.CALENDARS_READ, Scope.TENANTS_READ})
_EDITOR: Final = _VIEWER | {Scope.JOBS_WRITE, Scope.RUNS_WRITE, Scope.CALENDARS_WRITE}
_ADMIN: Final = _EDITOR | {Scope.SECRETS_READ, Scope.SECRETS_WRITE, Scope.KEYS_READ, Scope.KEYS_WRITE, Scope.AUDIT_READ}
_OPERATOR: Final = _ADMIN | {Scope.TENANTS_WRITE, Scope.FLEET_READ, Scope.FLEET_WRITE}

GRANTS: Final[Mapping[Role, frozenset[Scope]]] = MappingProxyType(
    {
        Role.WORKER: frozenset(),
        Role.VIEWER: _VIEWER,
        Role.EDITOR: _EDITOR,
        Role.ADMIN: _ADMIN,
        Role.OPERATOR: _OPERATOR,
    }
)
"""The scopes of each role, within the key's tenant. An operator's reach to other tenants, their keys and the fleet."""


LONGEST_QUEUE: Final = 200


class NewKey(NamedTuple):
    """A key to be made. Without `scopes` it may do all that its role may; without `life` it does not expire."""

    name: str
    role: Role
    scopes: Sequence[str] | None = None
    serves: Sequence[str] = ()
    life: timedelta | None = None
    rate: RateLimit | None = None

    @property
    def may(self) -> frozenset[Scope]:
        return scopes_of(self.role, self.scopes, self.serves)


class Authority(NamedTuple):
    """Whoever asks for something: of which tenant, in which role, and with what it may do."""

    tenant: int
    role: Role
    scopes: frozenset[Scope]

    def reaches(self, tenant: int) -> bool:
        """Whether tenants of this number exist for it."""
        return self.role is Role.OPERATOR or self.tenant == tenant


AT_THE_DATABASE: Final = Authority(0, Role.OPERATOR, frozenset(Scope))
"""Who has the password of the database may do everything anyway."""


def scopes_of(role: Role, only: Iterable[str] | None, serves: Sequence[str]) -> frozenset[Scope]:
    """What a key may do: what its role may, of that `only` these scopes if they are given, and work if it serves."""
    granted = GRANTS[role] if only is None else GRANTS[role] & frozenset(only)
    return granted | {Scope.WORK} if serves else granted


def parse_role(word: str) -> Role:
    try:
        return Role(word)
    except ValueError:
        raise InvalidField("role", f"there is no role {word[:40]!r}", f"one of {', '.join(Role)}") from None


def parse_scopes(role: Role, words: Iterable[str]) -> list[Scope]:
    """Scopes that narrow a role, each once; InvalidField for one that does not exist or that the role has not."""
    found = []
    for word in dict.fromkeys(words):
        try:
            scope = Scope(word)
        except ValueError:
            raise InvalidField("scopes", f"there is no scope {word[:40]!r}", f"some of {', '.join(Scope)}") from None
        if scope not in GRANTS[role]:
            raise InvalidField("scopes", f"the role {role} has not {scope}: scopes narrow a role", _who_has(scope))
        found.append(scope)
    return found


def check_serves(queues: Iterable[str]) -> None:
    for queue in queues:
        if not (1 <= len(queue) <= LONGEST_QUEUE and queue.isprintable()):
            raise InvalidField("serves", f"{queue[:40]!r} is no queue", "name a queue, or * for all of them")


def check_may(scope: Scope, authority: Authority) -> None:
    """Forbidden unless it has the scope."""
    if scope not in authority.scopes:
        raise Forbidden(f"this key, of the role {authority.role}, has not the scope {scope}", _who_has(scope))


def check_may_give(new: NewKey, authority: Authority) -> None:
    """Forbidden to give what one has not. Tenants share queues, so who serves them is for operators to say.

    Nor a role above one's own, however few scopes come with it: how far a key reaches goes by its role.
    """
    if new.role.is_above(authority.role):
        hint = f"ask somebody whose key is of the role {new.role}"
        raise Forbidden(f"this key is of the role {authority.role}, so it cannot give the role {new.role}", hint)
    scopes = new.may
    wanting = scopes - authority.scopes - {Scope.WORK}
    if wanting:
        names = ", ".join(sorted(wanting))
        raise Forbidden(f"this key has not {names} itself, so it cannot give it", "ask somebody who has")
    if Scope.WORK in scopes and Scope.FLEET_WRITE not in authority.scopes:
        hint = "ask the operator: whoever serves a queue sees the payloads of every tenant that uses it"
        raise Forbidden("only an operator lets keys serve queues", hint)


def check_may_touch(role: Role, authority: Authority) -> None:
    """Forbidden to change or end a key of a role above one's own."""
    if role.is_above(authority.role):
        hint = f"only keys of the role {role} change or revoke it"
        raise Forbidden(f"this is an {role}'s key, and the one that asks is of the role {authority.role}", hint)


def _who_has(scope: Scope) -> str:
    if scope is Scope.WORK:
        return "keys that serve queues have it: `foliot key create TENANT --serve QUEUE`"
    roles = [role for role in Role if scope in GRANTS[role]]
    return f"keys of the role {' or '.join(roles)} have it, unless they were made with fewer scopes"
