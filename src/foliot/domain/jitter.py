"""How long after its instant a job starts, so that jobs with the same schedule do not all start at once."""

import hashlib
from datetime import timedelta
from typing import Final

LONGEST: Final = timedelta(hours=1)
_STEP: Final = timedelta(milliseconds=1)


def phase(job: int, window: timedelta) -> timedelta:
    """The job's own place in [0, window), in whole milliseconds: always the same one, and spread evenly over jobs."""
    places = window // _STEP
    if not places:
        return timedelta()
    digest = hashlib.blake2b(job.to_bytes(8, "big", signed=True), digest_size=8, person=b"foliot.phase").digest()
    return int.from_bytes(digest, "big") % places * _STEP


def place_in(phase: timedelta, room: timedelta | None) -> timedelta:
    """How long after its instant a job of that phase starts, if the next one comes after `room`; as in the database."""
    return phase if room is None else phase % max((room + _STEP / 2) // _STEP * _STEP, _STEP)
