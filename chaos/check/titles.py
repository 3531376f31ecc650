"""What each check is called; docs/guides/chaos.md explains them."""

from typing import Final

SAFETY: Final = {
    "S1": "nothing acknowledged is lost",
    "S2": "every run comes to an end that something explains",
    "S3": "no instant passes in silence",
    "S4": "nothing is there twice",
    "S5": "nothing is there that nobody asked for",
    "S6": "nothing is taken from who has lost the run",
    "S7": "nothing runs again without a reason",
    "S8": "at most once means that",
    "S9": "never more at once than allowed",
    "S10": "never too early, and in order where that was asked",
    "S11": "nothing shows up with another tenant",
    "S12": "history tells what happened",
    "S13": "every message is delivered, in one wording",
    "S14": "jitter keeps to its window",
    "S15": "catch-up runs what its job still wants",
    "S16": "no more runs than maxRuns",
    "S17": "the occurrence ledger is true",
    "S18": "dead letters go on when somebody lets them",
    "S19": "what commits with a success is there once",
    "S20": "what is paused stands still",
    "S21": "a cancelled run is over",
    "S22": "graphs run in order, each join once",
    "S23": "a key opens what it may, until its end",
    "S24": "one change of one version",
    "S25": "the audit trail is whole",
    "S26": "never more than a quota, never faster than a rate",
    "S27": "what is encrypted is nowhere in clear",
    "S28": "nobody is stopped without a reason, or goes on when its time is up",
    "S31": "a command leaves nobody behind",
    "S32": "the newest run makes the older one stop",
    "S33": "an idempotency key stands for one request",
    "S34": "nobody is called who may not be",
    "S35": "a secret that was given is not kept",
}
"""S29 and S30 were never given: reports of all times mean the same by a number."""
QUALITY: Final = {
    "L1": "lateness",
    "L2": "recovery",
    "L3": "stuck",
    "L4": "fair shares",
    "L5": "duplicates",
    "L6": "availability",
}
TITLES: Final = SAFETY | QUALITY
