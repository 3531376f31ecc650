"""The peers, in the order in which they are measured."""

from bench.peers.adapters import (
    apscheduler,
    awa,
    bullmq,
    celery,
    dramatiq,
    floor,
    foliot,
    graphile,
    pgqueuer,
    procrastinate,
    taskiq,
)

PEERS = tuple(
    module.PEER
    for module in (
        foliot,
        floor,
        pgqueuer,
        graphile,
        awa,
        procrastinate,
        bullmq,
        taskiq,
        dramatiq,
        celery,
        apscheduler,
    )
)
