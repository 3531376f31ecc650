"""awa-pg: a Rust core with Python handlers, PostgreSQL."""

from bench.peers.peer import Peer

PEER = Peer(
    name="awa",
    title="awa-pg",
    store="postgres",
    runtime="python",
    packages=("awa-pg==0.6.9",),
    script="with_awa.py",
    settings=(
        "2 processes of 256 workers, queue storage, COPY enqueue, 4 enqueue shards, poll 50 ms,"
        " 10 connections a process, async Python handler"
    ),
    durability="loses nothing",
)
