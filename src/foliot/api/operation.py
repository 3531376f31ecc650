"""One table of operations: routes, documents, required scopes and generated tests all derive from it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from foliot.api.reading import SMALL
from foliot.domain.access import Authority, Role, Scope
from foliot.domain.address import Network
from foliot.domain.condition import UNCONDITIONAL, Condition
from foliot.domain.egress import EVERYWHERE, Egress
from foliot.services.audit import AuditTrail
from foliot.services.backlog import Backlog
from foliot.services.calendars import CalendarKeeper
from foliot.services.cancel import Canceller
from foliot.services.complete import Completer
from foliot.services.control import Control
from foliot.services.dead_letters import DeadLetters
from foliot.services.encryption import Encryption
from foliot.services.explain import Explainer
from foliot.services.fleet import Fleet
from foliot.services.gateway import Gateway
from foliot.services.graphs import Graphs
from foliot.services.insights import Insights
from foliot.services.keys import Keys
from foliot.services.ledger import Ledger
from foliot.services.once import Once
from foliot.services.operations import Operations
from foliot.services.pacing import Pacing
from foliot.services.paging import Paging
from foliot.services.secrets import Secrets
from foliot.services.submit import Submitter
from foliot.services.tenants import Tenants
from foliot.services.terms import TermsKeeper
from foliot.store.specs import SpecBook

SCOPES: Final = frozenset(Scope)
WITHOUT_KEY: Final = "token"
"""Instead of a scope: what opens the call comes with it, and no key has it."""


class Tenant(NamedTuple):
    """Who is calling."""

    id: int
    name: str
    key: str = ""
    """The id of the key that it calls with."""
    serves: Sequence[str] = ()
    """The queues whose work that key may fetch."""
    role: Role = Role.WORKER
    scopes: frozenset[Scope] = frozenset()
    backlog: int | None = None
    """How many of its runs may wait before no more are taken, if that is not what is usual."""

    @property
    def authority(self) -> Authority:
        return Authority(self.id, self.role, self.scopes)


class Services(NamedTuple):
    """What operations call."""

    control: Control
    insights: Insights
    ledger: Ledger
    submitter: Submitter
    specs: SpecBook
    operations: Operations
    calendars: CalendarKeeper
    dead_letters: DeadLetters
    fleet: Fleet
    gateway: Gateway
    tenants: Tenants
    canceller: Canceller
    completer: Completer
    graphs: Graphs
    keys: Keys
    audit: AuditTrail
    paging: Paging
    explainer: Explainer
    terms: TermsKeeper
    pacing: Pacing
    backlog: Backlog
    secrets: Secrets
    encryption: Encryption
    once: Once
    egress: Egress = EVERYWHERE
    """What is refused at the door already; the workers decide, and they ask again."""
    proxies: Sequence[Network] = ()
    """Who is believed when it says for whom it calls."""


class Call(NamedTuple):
    """One authorised request, parsed."""

    tenant: Tenant
    services: Services
    path: Mapping[str, str]
    query: Any
    body: Any
    raw: bytes
    key: str | None
    """The Idempotency-Key header."""
    fingerprint: bytes
    """Of a call with a key; empty without."""
    gone: Callable[[], Awaitable[None]]
    """Returns when the caller has hung up."""
    token: str = ""
    """What the caller shows, of an operation that needs no key."""
    condition: Condition = UNCONDITIONAL
    """Of a change: which version of the thing it is meant for."""


class Reply(NamedTuple):
    """What to answer: a value to encode, or bytes that are JSON already."""

    value: Any
    status: int | None = None
    location: str | None = None
    version: int | None = None
    """Of what is answered, where the bytes do not show it."""


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the API does. Without a scope, one of those that there are, it cannot exist."""

    name: str
    method: str
    path: str
    scope: str
    summary: str
    handler: Callable[[Call], Awaitable[Reply]]
    result: Any
    body: Any = None
    body_is_optional: bool = False
    body_shown: Any = None
    """What the body looks like, where the handler reads it by itself."""
    query: Any = None
    status: int = 200
    also: tuple[int, ...] = ()
    """Other ways to succeed, with the same shape."""
    needs_key: bool = True
    """Whether a tenant's key is asked for; if not, the handler looks at the token that it was called with."""
    keeps_first_answer: bool = False
    """Whether the handler keeps what it answered to an Idempotency-Key, in the transaction of what it tells of.

    For what creates something. With all other changes the endpoint keeps it: see `services/once.py`.
    """
    takes_secret: bool = False
    """Whether something stands in its body that nobody may find out, also not from a digest."""
    is_submission: bool = False
    """Whether it hands in work. That is no change, and too frequent to be noted: the run itself is the record.

    It is refused while too much waits already.
    """
    is_by_hand: bool = False
    """Whether it is noted all the same: somebody sets a job going besides its schedule, and its run tells not who."""
    costs: Callable[[Any], int] | None = None
    """What a call is to a rate limit, told from its body: as many as it hands in; 1 without."""
    is_versioned: bool = False
    """Whether what it answers with has a version: the answer carries an ETag."""
    is_conditional: bool = False
    """Whether it changes only the version that the caller names, if it names one (If-Match)."""
    largest_body: int = SMALL
    text: tuple[str, Callable[[str], Any]] | None = None
    """Besides JSON: a content type, and how a body is made from text that is declared as such."""

    @property
    def route(self) -> str:
        """The path as the router wants it: keys may contain slashes, ids never do."""
        return self.path.replace("{key}", "{key:path}")

    @property
    def shapes(self) -> tuple[Any, ...]:
        """What bodies and queries of it look like."""
        return tuple(each for each in (self.body_shown or self.body, self.query) if each is not None)

    @property
    def is_fixed(self) -> bool:
        """Whether its address is always the same."""
        return "{" not in self.path

    @property
    def takes_key(self) -> bool:
        """Whether an Idempotency-Key is honoured: with all that changes something.

        Not with what workers and targets say: fences, the numbers of claims and tokens are what makes that happen once.
        """
        return self.method != "GET" and self.scope != "work" and self.needs_key

    @property
    def is_paced(self) -> bool:
        """Whether rate limits count it. What workers ask for is the operator's business, whosever runs they are."""
        return self.needs_key and self.scope != "work"

    @property
    def is_many(self) -> bool:
        """Whether its body holds many of a kind, in each of which the same names stand."""
        return self.costs is not None or self.scope == "work"

    @property
    def is_change(self) -> bool:
        """Whether the audit trail tells of it. What workers and targets say of runs is told by their history."""
        return self.takes_key and (self.is_by_hand or not self.is_submission)

    def __post_init__(self) -> None:
        if self.scope not in (SCOPES if self.needs_key else {WITHOUT_KEY}):
            raise ValueError(f"operation {self.name} has no scope that keys can have: {self.scope!r}")
