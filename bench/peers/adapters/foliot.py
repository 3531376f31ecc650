"""Foliot itself, on the same terms as the others."""

from bench.peers.peer import Peer
from foliot import __version__

PEER = Peer(
    name="foliot",
    title="Foliot",
    store="postgres",
    runtime="own",
    packages=(f"foliot=={__version__}",),
    script="with_foliot.py",
    settings=(
        "one worker process, 100 at a time, its own batching, 20 tenants, finished runs kept in history;"
        " the producer calls the service behind the API, not HTTP"
    ),
    durability="loses nothing: on disk when the call returns",
    bulk="1,000 a call",
    worker=("{python}", "-m", "foliot", "worker", "with_foliot:worker"),
    workers=1,
    beside=(("{python}", "-m", "foliot", "scheduler"),),
    schedules=True,
)
