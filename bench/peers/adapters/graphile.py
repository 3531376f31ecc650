"""Graphile Worker: Node, PostgreSQL."""

from bench.peers.peer import Candidate, Peer

PEER = Peer(
    name="graphile",
    title="Graphile Worker",
    store="postgres",
    runtime="node",
    packages=("graphile-worker@0.17.3", "pg@8.23.1"),
    script="with_graphile.mjs",
    settings=(
        "24 concurrent jobs, pool 25, local queue 500, completion and failure batch delay 0; finished jobs deleted."
        " Its own page on performance has these settings, with 4 processes on a larger machine"
    ),
    durability="loses nothing; a crash runs again what was done but not yet acknowledged in a batch",
    bulk="1,000 a call",
    not_chosen="its defaults, without local queue and batches: a statement for every job that is taken or done",
    candidates=(Candidate("2 processes"), Candidate("4 processes", workers=4), Candidate("1 process", workers=1)),
)
