"""How to run something: a handler and the policy around it, immutable and known by its content."""

import hashlib
import re
import shlex
from datetime import timedelta
from functools import cached_property
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.domain.errorclass import RetryRule
from foliot.domain.errors import InvalidField
from foliot.domain.fairness import Priority
from foliot.domain.limits import Concurrency
from foliot.domain.retry import Backoff
from foliot.domain.secret import Text

FUNCTION_NAME: Final = re.compile(r"[A-Za-z_][\w.-]{0,199}", re.ASCII)
LARGEST_PAYLOAD: Final = 256 * 1024
"""Bytes of JSON."""
LONGEST_SHOWN: Final = 500
"""Characters of a command line that are shown."""


LONGEST_TIMEOUT: Final = timedelta(days=7)


class HttpHandler(msgspec.Struct, frozen=True, tag="http", tag_field="type", forbid_unknown_fields=True):
    """A web address to call. Without `url` the address travels with each run, so that specs stay few."""

    url: str | None = None
    method: str = "POST"
    headers: dict[str, Text] = {}

    @property
    def group(self) -> str:
        return "http"

    @property
    def label(self) -> str:
        return self.url or "http"


class FunctionHandler(msgspec.Struct, frozen=True, tag="function", tag_field="type", forbid_unknown_fields=True):
    """A function that some worker has registered under this name."""

    name: str

    @property
    def group(self) -> str:
        return f"fn:{self.name}"

    @property
    def label(self) -> str:
        return self.name


class CommandHandler(msgspec.Struct, frozen=True, tag="command", tag_field="type", forbid_unknown_fields=True):
    """A program and its arguments, for a worker whose operator allows it; no shell reads them.

    Without `argv` they travel with each run, so that specs stay few.
    """

    argv: tuple[str, ...] = ()

    @property
    def group(self) -> str:
        return "command"

    @property
    def label(self) -> str:
        return self.argv[0] if self.argv else "command"


class Resources(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    """What a container gets at most, if it asks for less than the operator's limits."""

    cpus: Annotated[float, Meta(gt=0, le=1_024)] | None = None
    memory_mib: Annotated[int, Meta(ge=4, le=2**30)] | None = None


class ContainerHandler(msgspec.Struct, frozen=True, tag="container", tag_field="type", forbid_unknown_fields=True):
    """An image and what it is given, for a worker that has an engine and whose operator allows it.

    Without `image` all but the resources travels with each run, so that specs stay few.
    """

    image: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, Text] = {}
    resources: Resources = Resources()

    @property
    def group(self) -> str:
        return "container"

    @property
    def label(self) -> str:
        return self.image or "container"


Handler = HttpHandler | FunctionHandler | CommandHandler | ContainerHandler


def shown(handler: Handler, target: bytes | None) -> str:
    """What people know the handler of a run by; `target` is what travelled with the run."""
    varying = msgspec.json.decode(target) if target else {}
    if isinstance(handler, CommandHandler | ContainerHandler):
        words = handler.argv if isinstance(handler, CommandHandler) else (handler.image, *handler.args)
        line = shlex.join(varying.get("argv") or [varying["image"], *varying["args"]] if varying else words)
        return line if len(line) <= LONGEST_SHOWN else f"{line[: LONGEST_SHOWN - 1]}…"
    return str(varying.get("url") or handler.label)


class Spec(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Handler and policy of a run. Equal specs are the same spec, whoever wrote them."""

    handler: Handler
    queue: str = "default"
    priority: Priority = Priority.NORMAL
    max_retries: int = 3
    backoff: Backoff = Backoff()
    timeout: timedelta = timedelta(seconds=300)
    # What came after the first release is there only if it is unusual: a spec that does without keeps its name.
    retry: tuple[RetryRule, ...] | UnsetType = UNSET
    """Rules per kind of error."""
    delivery: Literal["atMostOnce"] | UnsetType = UNSET
    on_disconnect: Literal["stop"] | UnsetType = UNSET
    end_is_said: Literal[True] | UnsetType = UNSET
    """That its owner has written `on_disconnect` where it is as usual, so that it stays when the usual changes."""
    concurrency: Concurrency | UnsetType = UNSET
    requires: tuple[str, ...] | UnsetType = UNSET
    """Labels that a worker must carry, as `domain.labels` writes them."""

    def __post_init__(self) -> None:
        if self.delivery is not UNSET and self.max_retries:
            hint = 'set it to 0, or let it be delivered "atLeastOnce"'
            raise InvalidField("maxRetries", "a run that is delivered at most once is never tried again", hint)
        if self.delivery is not UNSET and self.retry is not UNSET:
            hint = 'leave it out, or let it be delivered "atLeastOnce"'
            raise InvalidField("retry", "a run that is delivered at most once is never tried again", hint)

    @property
    def rules(self) -> tuple[RetryRule, ...]:
        return () if self.retry is UNSET else self.retry

    @property
    def labels(self) -> tuple[str, ...]:
        """What its worker must carry."""
        return () if self.requires is UNSET else self.requires

    @property
    def is_at_most_once(self) -> bool:
        """Whether its handler begins once at most, so that a lost worker leaves the outcome unknown."""
        return self.delivery is not UNSET

    @property
    def stops_when_cut_off(self) -> bool:
        """Whether its handler is stopped before the lease of a worker that cannot reach the database ends."""
        return self.on_disconnect is not UNSET

    @property
    def limit(self) -> int | None:
        """How many of its runs go at once: of the job, or of each key."""
        return None if self.concurrency is UNSET else self.concurrency.limit

    @property
    def limit_path(self) -> str | None:
        """The path into the payload by which the limit tells runs apart."""
        return None if self.concurrency is UNSET else self.concurrency.key

    def key_of(self, payload: bytes) -> int | None:
        """Which of the runs under this spec's limit count together with one of this payload."""
        return None if self.concurrency is UNSET else self.concurrency.key_of(payload)

    def body(self) -> bytes:
        """The canonical bytes: what is stored, and what the digest is of."""
        return msgspec.json.encode(self, order="sorted")

    @cached_property
    def name(self) -> bytes:
        """What its content is called; found once, since the same few are asked thousands of times a second."""
        return digest(self.body())

    @classmethod
    def parse(cls, body: bytes) -> "Spec":
        return msgspec.json.decode(body, type=cls)


def digest(body: bytes) -> bytes:
    """The name that a spec's content gives it."""
    return hashlib.sha256(body).digest()
