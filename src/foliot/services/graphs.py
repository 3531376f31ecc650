"""Graphs as a whole: started by hand, looked at, cancelled."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final

import msgspec

from foliot.domain.errors import Conflict, NotFound
from foliot.domain.graph import MOST_NODES, Edge, awaited, status_of, stuck
from foliot.domain.ids import encode
from foliot.domain.states import STATUS_OF, State
from foliot.kit.signals import DUE, READY
from foliot.store import graphs
from foliot.store.audit import note
from foliot.store.database import Connection, Database
from foliot.store.graphs import GraphRow, NodeRow
from foliot.store.jobs import clock
from foliot.store.sealed import PAYLOAD
from foliot.store.stopping import stop
from foliot.store.submission import Asked, NewRun, answer_once, do_once
from foliot.store.vault import NO_VAULT, Mark, Vault
from foliot.wire.graphs import WORDS, GraphEdge, GraphNode, GraphView
from foliot.wire.run_views import Accepted

_WHY: Final = "its graph was cancelled"


class Graphs:
    """Serves one tenant at a time; another tenant's run is answered like one that never was."""

    def __init__(self, database: Database, hint: Callable[[str], None], vault: Vault = NO_VAULT) -> None:
        self._database = database
        self._hint = hint
        self._vault = vault

    async def start(self, run: NewRun, asked: Asked) -> bytes:
        """Start the graph whose root `run` is of, all its roots at once; the answer names the run of that root.

        Overlap does not apply. With an idempotency key, the first answer to that key.
        """

        async def write() -> bytes:
            async with self._database.transaction() as connection:
                accepted = Accepted(encode("run", await self._start(connection, run)))
                await note(connection, encode("job", run.job or 0), None, {"runId": accepted.run_id})
                body = msgspec.json.encode(accepted)
                await answer_once(connection, asked, body)
            return body

        body, is_new = await do_once(self._database, asked, write)
        if is_new:
            self._hint(DUE if run.due or run.delay else READY)
        return body

    async def _start(self, connection: Connection, run: NewRun) -> int:
        if run.job is None or not await graphs.hold_graph(connection, run.job):
            hint = "resume what is paused first; instead of a cancelled job, make another"
            raise Conflict("a job without which the graph cannot start is paused or cancelled", hint)
        now = await clock(connection)
        due = run.due or (now + run.delay if run.delay else now)
        lock = await self._vault.lock(run.spec.tenant)
        payload = run.payload if lock is None else lock.seal(Mark.JOB, run.job, PAYLOAD, run.payload)
        return await graphs.start_graph(connection, graphs.Start(run.job, run.spec, payload, run.limit_key, due))

    async def read(self, tenant: int, run: int) -> GraphView:
        """The graph that a run is part of."""
        async with self._database.connection() as connection:
            return _view(await self._find(connection, tenant, run))

    async def cancel(self, tenant: int, run: int) -> GraphView:
        """End what of the graph has not ended: what waits at once, what a worker holds is asked to stop."""
        async with self._database.transaction() as connection:
            found = await self._find(connection, tenant, run)
            stopped = await stop(connection, list(found.nodes), _WHY)
            if ended := [*stopped.ended, *stopped.asked]:
                names = [encode("run", each) for each in sorted(ended)]
                await note(connection, encode("run", run), None, {"became": "cancelled", "runIds": names})
            view = _view(await self._find(connection, tenant, run))
        for channel in stopped.channels:
            self._hint(channel)
        if stopped.lanes:
            self._hint(READY)
        return view

    async def _find(self, connection: Connection, tenant: int, run: int) -> GraphRow:
        found = await graphs.find_graph(connection, tenant, run, MOST_NODES)
        if found is None:
            raise NotFound("there is no such run in a graph", "only runs of jobs that depend on each other are in one")
        return found


def _view(row: GraphRow) -> GraphView:
    states = {node.run: node.state for node in row.nodes.values()}
    edges = [edge for edge in row.edges if edge.parent in states and edge.child in states]
    blame = stuck(states, edges)
    parents: dict[int, list[Edge]] = defaultdict(list)
    for edge in edges:
        parents[edge.child].append(edge)
    counts = Counter(state.word for state in states.values())
    return GraphView(
        graph_id=None if row.id is None else encode("run", row.id),
        status=status_of(list(states.values()), len(blame)),
        scheduled_at=row.scheduled_at,
        counts=dict(sorted(counts.items())),
        nodes=[_node(row.nodes[run], parents[run], states, is_stuck=run in blame) for run in sorted(row.nodes)],
        edges=[
            GraphEdge(parent=encode("run", edge.parent), child=encode("run", edge.child), when=WORDS[edge.when])
            for edge in edges
        ],
    )


def _node(node: NodeRow, parents: list[Edge], states: dict[int, State], *, is_stuck: bool) -> GraphNode:
    waits = node.state is State.BLOCKED
    return GraphNode(
        run_id=encode("run", node.run),
        job_id=encode("job", node.job),
        name=node.name,
        key=node.key,
        status=STATUS_OF[node.state],
        state=node.state.word,
        started_at=node.started_at,
        finished_at=node.finished_at,
        error_message=node.error,
        waiting_for=[encode("run", run) for run in awaited(parents, states)] if waits else msgspec.UNSET,
        stuck=is_stuck if waits else msgspec.UNSET,
    )
