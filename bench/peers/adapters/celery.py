"""Celery: Python, Redis."""

from bench.peers.peer import Peer

PEER = Peer(
    name="celery",
    title="Celery",
    store="redis",
    runtime="python",
    packages=("celery[redis]==5.7.0", "redis==8.1.0"),
    script="with_celery.py",
    settings=(
        "2 workers of 10 threads, prefetch multiplier 100, results ignored, early acknowledgement,"
        " gossip, mingle and heartbeat off"
    ),
    durability="a crash of Redis loses about the last second, a crash of a worker all it had prefetched and begun",
    not_chosen=(
        "the prefork pool, its default, which is meant for handlers that keep a processor busy and hands every message"
        " on to a child process; a handler that does nothing gains nothing by that. Nor gevent and eventlet"
    ),
    worker=(
        *("{python}", "-m", "celery", "-A", "with_celery", "worker", "--hostname", "bench{number}@%h"),
        *("--pool", "threads", "--concurrency", "10", "--loglevel", "warning"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    ),
    bulk="no such call: one by one",
    runs=20_000,
)
