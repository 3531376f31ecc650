"""Procrastinate: Python, asyncio, PostgreSQL."""

from bench.peers.peer import Peer

PEER = Peer(
    name="procrastinate",
    title="Procrastinate",
    store="postgres",
    runtime="python",
    packages=("procrastinate==3.10.0", "psycopg[binary]==3.3.8", "psycopg-pool==3.3.3"),
    script="with_procrastinate.py",
    settings=(
        "2 processes, concurrency 50, LISTEN on, poll 0.5 s, finished jobs deleted, pool up to 20;"
        " sustained with a backlog of at most 1,000, because it slows as the backlog grows"
    ),
    durability="loses nothing",
    bulk="500 a call",
    runs=10_000,
    most_waiting=1_000,
)
