"""Dramatiq: Python, Redis."""

from bench.peers.peer import Peer

PEER = Peer(
    name="dramatiq",
    title="Dramatiq",
    store="redis",
    runtime="python",
    packages=("dramatiq[redis]==2.2.1", "redis[hiredis]==8.1.0", "hiredis==3.5.0"),
    script="with_dramatiq.py",
    settings="2 processes of 8 threads, default middleware (its metrics are no part of that), no results",
    durability="a crash loses about the last second (append-only file, flushed every second)",
    bulk="no such call: one by one",
    worker=("{python}", "-m", "dramatiq", "with_dramatiq", "--processes", "2", "--threads", "8"),
    workers=1,
    runs=50_000,
)
