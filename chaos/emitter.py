"""A command of the chaos application: does what its payload says, and reports all of it to the ledger.

Run by whatever Python the machine has for everybody, as an account that may read nothing of ours: it needs nothing but
itself. `python3 -I emitter.py LEDGER`
"""

import hashlib
import json
import os
import secrets
import signal
import socket
import sys
import time
from datetime import datetime
from typing import Any

BEAT = 0.5
"""As in `act`."""
STAYS = 90.0
"""Seconds that somebody stays whom a command leaves behind, if nobody ends it."""


class Ledger:
    """One connection; what is said is on disk before it goes on."""

    def __init__(self, path: str, about: dict[str, Any]) -> None:
        self._about = about
        line = socket.socket(socket.AF_UNIX)
        line.connect(path)
        self._stream = line.makefile("rwb")

    def say(self, phase: str, **more: Any) -> None:
        effect = {"seq": 0, "at": 0.0, "phase": phase, **self._about, **more}
        self._stream.write(json.dumps([1, [effect]]).encode() + b"\n")
        self._stream.flush()
        if not json.loads(self._stream.readline())[1]:
            sys.exit("fenced out")


def digest(payload: Any) -> str:
    """As in `records`, whose JSON has no spaces, and its keys in order."""
    written = json.dumps(payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.blake2b(written.encode(), digest_size=8).hexdigest()


def about(payload: dict[str, Any]) -> dict[str, Any]:
    told = os.environ
    at = told["FOLIOT_SCHEDULED_AT"].replace("Z", "+00:00")  # which Pythons before 3.11 cannot read
    return {
        "tenant": payload["tenant"],
        "run": told["FOLIOT_RUN"],
        "attempt": int(told["FOLIOT_ATTEMPT"]),
        "fence": int(told["FOLIOT_FENCE"]),
        "worker": "",  # nobody in here knows; the ledger sees who has started this process
        "job": told.get("FOLIOT_JOB"),
        "scheduled_at": datetime.fromisoformat(at).timestamp(),
        "concurrency_key": payload.get("account"),
        "payload": digest(payload),
        "nonce": secrets.token_hex(6),
        "isolated": True,
    }


def take_time(ledger: Ledger, seconds: float) -> None:
    ready = time.monotonic() + seconds
    while (left := ready - time.monotonic()) > 0:
        time.sleep(min(left, BEAT))
        if time.monotonic() < ready:
            ledger.say("beat")


def leave_somebody(path: str, payload: dict[str, Any], told: dict[str, Any]) -> None:
    """One with another parent, in a session of its own, who does not heed SIGTERM: whoever is alive tells so."""
    if first := os.fork():
        os.waitpid(first, 0)
        return
    os.setsid()
    if os.fork():
        os._exit(0)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if not payload.get("deaf"):  # some keep what they were given open, some do not
        for each in range(3):
            os.dup2(os.open(os.devnull, os.O_RDWR), each)
    take_time(Ledger(path, told), STAYS)
    os._exit(0)


def main() -> None:
    path, payload = sys.argv[1], json.load(sys.stdin)
    told = about(payload)
    ledger = Ledger(path, told)
    if payload.get("deaf"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ledger.say("start")
    if payload.get("leaves"):
        leave_somebody(path, payload, told)
    take_time(ledger, payload.get("slow", 0.0))
    failing = told["attempt"] <= payload.get("fail", 0)
    ledger.say("effect")
    ledger.say("end", failed=failing)
    if failing:
        sys.exit(f"attempt {told['attempt']} fails on purpose")


if __name__ == "__main__":
    main()
