"""Graphs on the wire: what a job waits for, and how the runs of a graph stand."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from foliot.domain.errors import InvalidField
from foliot.domain.graph import MOST_NODES, Need, When
from foliot.domain.ids import encode

JobName = Annotated[str, Meta(min_length=1, max_length=63, description="The id or the key of a job")]
Instant = Annotated[datetime, Meta(tz=True)]
WORDS: Final = {When.SUCCESS: "success", When.DONE: "done", When.FAILED: "failed"}


class NeedBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A job to wait for: until it has succeeded, until it has ended in any way, or until it has failed."""

    job: JobName
    when: Literal["success", "done", "failed"] = "success"


DependsOn = Annotated[
    list[JobName | NeedBody],
    Meta(max_length=MOST_NODES, description="Jobs that must have run before: ids, keys, or objects with `when`"),
]


def needs_of(bodies: Sequence[str | NeedBody]) -> tuple[Need, ...]:
    """What a job waits for, each named once."""
    needs: dict[str, Need] = {}
    for index, body in enumerate(bodies):
        each = NeedBody(body) if isinstance(body, str) else body
        if each.job in needs:
            raise InvalidField(f"dependsOn[{index}]", f"{each.job!r} stands there twice", "name each job once")
        needs[each.job] = Need(each.job, When[each.when.upper()])
    return tuple(needs.values())


def need_bodies(parents: Iterable[int], conditions: Iterable[int]) -> list[NeedBody]:
    return [
        NeedBody(encode("job", parent), WORDS[When(each)])  # type: ignore[arg-type]
        for parent, each in zip(parents, conditions, strict=True)
    ]


class GraphNode(msgspec.Struct, kw_only=True, rename="camel"):
    """One run of a graph."""

    run_id: str
    job_id: str
    name: str
    key: str | None
    status: str
    state: str
    started_at: Instant | None
    finished_at: Instant | None
    error_message: str | None
    waiting_for: list[str] | UnsetType = UNSET
    """The runs that must end first, of one that waits; those that have failed come first."""
    stuck: bool | UnsetType = UNSET
    """Whether it waits, directly or through others, for a run that has failed for good: replay that one."""


class GraphEdge(msgspec.Struct, kw_only=True, rename="camel"):
    parent: str
    child: str
    when: str


class GraphView(msgspec.Struct, kw_only=True, rename="camel"):
    """Runs that wait for each other: those of one firing of a graph, or of one-time jobs that hang together."""

    graph_id: str | None
    """The run of its first root, by which the graph is known; null for one-time jobs."""
    status: str
    scheduled_at: Instant | None
    counts: dict[str, int]
    """How many of the nodes have each state."""
    nodes: list[GraphNode]
    edges: list[GraphEdge]
