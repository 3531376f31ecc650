"""APScheduler: Python, schedules only, kept in PostgreSQL."""

from bench.peers.peer import Peer

PEER = Peer(
    name="apscheduler",
    title="APScheduler",
    store="postgres",
    runtime="python",
    packages=("apscheduler==3.11.3", "sqlalchemy==2.1.8", "psycopg[binary]==3.3.8"),
    script="with_apscheduler.py",
    settings=(
        "SQLAlchemy store on PostgreSQL, one process (it allows no second on one store), 20 threads,"
        " unlimited misfire grace: its default of 1 s would drop most of what is late"
    ),
    durability="schedules are on disk; a run that began is forgotten in a crash",
    bulk="no such call: one by one",
    workers=1,
    runs_queue=False,
    schedules=True,
)
