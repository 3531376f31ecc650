"""Celery: Python, Redis."""

from bench.peers.peer import Candidate, Peer


def _worker(pool: str, concurrency: int) -> tuple[str, ...]:
    return (
        *("{python}", "-m", "celery", "-A", "with_celery", "worker", "--hostname", "bench{number}@%h"),
        *("--pool", pool, "--concurrency", str(concurrency), "--loglevel", "warning"),
        *("--without-gossip", "--without-mingle", "--without-heartbeat"),
    )


PEER = Peer(
    name="celery",
    title="Celery",
    store="redis",
    runtime="python",
    packages=("celery[redis]==5.7.0", "redis[hiredis]==8.1.0", "hiredis==3.5.0"),
    script="with_celery.py",
    settings="prefetch multiplier 100, results ignored, early acknowledgement, gossip, mingle and heartbeat off",
    durability="a crash of Redis loses about the last second, a crash of a worker all it had prefetched and begun",
    bulk="no such call: one by one",
    not_chosen="the pools gevent and eventlet, which are meant for handlers that wait",
    runs=20_000,
    candidates=(
        Candidate("2 workers of 10 threads", worker=_worker("threads", 10)),
        Candidate("one worker of 2 child processes (its default, prefork)", worker=_worker("prefork", 2), workers=1),
    ),
)
