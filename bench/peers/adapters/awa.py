"""awa-pg: a Rust core with Python handlers, PostgreSQL."""

from bench.peers.peer import Candidate, Peer

PEER = Peer(
    name="awa",
    title="awa-pg",
    store="postgres",
    runtime="python",
    packages=("awa-pg==0.6.9",),
    script="with_awa.py",
    settings=(
        "queue storage, COPY enqueue, 4 enqueue shards, poll 50 ms, 10 connections a process, async Python handler"
    ),
    durability="loses nothing",
    bulk="1,000 a call",
    candidates=(
        Candidate("2 processes of 256 workers, one queue"),
        Candidate(
            "2 processes of 1,024 workers, 256 for each of 4 partitions of the queue",
            environment={"PEER_PARTITIONS": "4"},
        ),
    ),
)
