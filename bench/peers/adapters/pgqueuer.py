"""PgQueuer: Python, asyncio, PostgreSQL."""

from bench.peers.peer import Peer

PEER = Peer(
    name="pgqueuer",
    title="PgQueuer",
    store="postgres",
    runtime="python",
    packages=("pgqueuer==1.6.0", "asyncpg==0.32.0", "uvloop==0.23.0"),
    script="with_pgqueuer.py",
    settings="asyncpg, uvloop, 2 processes, batch 500, at most 1,000 tasks, its recommended autovacuum settings",
    durability='loses nothing ("durable" tables)',
    bulk="1,000 a call",
    not_chosen=(
        "durability `balanced`, which writes its log into unlogged tables: faster, but a crash empties them, and"
        " Foliot's history would stand beside one that is lost"
    ),
)
