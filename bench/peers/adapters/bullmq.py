"""BullMQ: Node, Redis."""

from bench.peers.peer import Peer

PEER = Peer(
    name="bullmq",
    title="BullMQ",
    store="redis",
    runtime="node",
    packages=("bullmq@6.7.0", "ioredis@5.11.1"),
    script="with_bullmq.mjs",
    settings="2 processes, concurrency 500, removed on completion, ioredis",
    durability="a crash loses about the last second (append-only file, flushed every second)",
    bulk="1,000 a call",
)
