"""Graphile Worker: Node, PostgreSQL."""

from bench.peers.peer import Peer

PEER = Peer(
    name="graphile",
    title="Graphile Worker",
    store="postgres",
    runtime="node",
    packages=("graphile-worker@0.17.3", "pg@8.23.1"),
    script="with_graphile.mjs",
    settings=(
        "2 processes, 24 concurrent jobs, pool 25, local queue 500, completion and failure batch delay 0;"
        " finished jobs deleted"
    ),
    durability="loses nothing; a crash runs again what was done but not yet acknowledged in a batch",
    not_chosen=(
        "its defaults, without local queue and batches: a statement for every job that is taken or done. What was"
        " chosen is what its own page on performance measures with"
    ),
)
