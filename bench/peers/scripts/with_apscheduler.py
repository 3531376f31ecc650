"""APScheduler, in its own environment: jobs in PostgreSQL through SQLAlchemy, 20 threads, none given up as late."""

import os
import signal
import sys
import threading
import time
from datetime import UTC, datetime, timedelta

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from side import LONGEST_LIFE, URL, Tally, say

tally = Tally()


def due(at: float) -> None:
    tally.started(at)


def scheduler() -> BackgroundScheduler:
    store = SQLAlchemyJobStore(url=URL.replace("postgresql://", "postgresql+psycopg://", 1))
    return BackgroundScheduler(
        jobstores={"default": store},
        executors={"default": ThreadPoolExecutor(20)},
        job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        timezone=UTC,
    )


def schedule(count: int, ahead: float) -> None:
    """Store `count` interval jobs that are all due at one instant, `ahead` seconds from now."""
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=ahead)
    made = scheduler()
    made.start(paused=True)
    began = time.monotonic()
    for number in range(count):
        made.add_job(
            "with_apscheduler:due",
            "interval",
            days=1,
            start_date=at,
            next_run_time=at,
            args=(at.timestamp(),),
            id=f"{at.timestamp():.0f}-{number}",
        )
    seconds = time.monotonic() - began
    made.shutdown()
    say({"due": at.timestamp(), "made": count, "seconds": seconds})


def work() -> None:
    asked = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: asked.set())
    running = scheduler()
    running.start()
    asked.wait(LONGEST_LIFE)
    os._exit(0)  # what it still has in hand is no part of the measurement


if __name__ == "__main__":
    if sys.argv[1] == "work":
        work()
    elif sys.argv[1] == "schedule":
        schedule(int(sys.argv[2]), float(sys.argv[3]))
