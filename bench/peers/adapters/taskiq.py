"""taskiq with taskiq-redis: Python, asyncio, Redis streams."""

from bench.peers.peer import Peer

PEER = Peer(
    name="taskiq",
    title="taskiq",
    store="redis",
    runtime="python",
    packages=("taskiq==0.13.0", "taskiq-redis==1.2.4", "redis[hiredis]==8.1.0", "hiredis==3.5.0", "uvloop==0.23.0"),
    script="with_taskiq.py",
    settings="stream broker, 2 processes, 100 async tasks, prefetch 100, uvloop, no result backend",
    durability="a crash loses about the last second (append-only file, flushed every second)",
    bulk="no such call: 50 in flight",
    worker=(
        *("{python}", "-m", "taskiq", "worker", "with_taskiq:broker", "--workers", "2"),
        *("--max-async-tasks", "100", "--max-prefetch", "100", "--log-level", "WARNING"),
    ),
    workers=1,
    runs=50_000,
)
