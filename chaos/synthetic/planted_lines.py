"""Planted faults of lines: too many at once, out of turn, skipped without need, and called by nobody."""

from collections import defaultdict

from chaos.oracle import seconds
from chaos.records import CROWD, CROWDED, Phase
from chaos.synthetic.surgery import Row, Surgery, plant
from chaos.synthetic.world import BOUNDS, QUIET, rfc3339


def _line(it: Surgery, limit: int, *tries: str, on_the_web: bool = False) -> list[Row]:
    """The runs of a key with this limit in quiet times, in order; their first one had these attempts."""
    given = {name: (each.body or {}).get("concurrency", {}) for name, each in it.submissions().items()}
    keys: dict[str, list[Row]] = defaultdict(list)
    for row in it.runs():
        if given.get(row["runId"], {}).get("limit") == limit and seconds(row["createdAt"]) > QUIET:
            keys[it.effects(row)[0].concurrency_key or ""].append(row)
    own = (rows for rows in keys.values() if on_the_web != bool(it.effects(rows[0])[0].worker))
    rows = next(rows for rows in own if it.tries(rows[0]) == list(tries))
    return sorted(rows, key=lambda row: it.effects(row)[0].at)


def _too_early(it: Surgery, rows: list[Row], limit: int) -> None:
    """The first that had to wait began beside those that it had to wait for."""
    rows.sort(key=lambda row: it.effects(row)[0].at)
    it.effects(rows[limit], Phase.START)[0].at = it.effects(rows[limit - 1], Phase.START)[0].at + 0.2
    it.sort()


def _queue(it: Surgery, overlap: str) -> list[Row]:
    """The instants of a job whose runs wait for each other, in quiet times."""
    return it.occurrences(next(row for row in it.jobs() if row.get("overlap") == overlap))


@plant("S9 limit of a key")
def _(it: Surgery) -> None:
    for limit in (1, 2):
        _too_early(it, _line(it, limit, "completed"), limit)


@plant("S9 limit of a key of HTTP targets")
def _(it: Surgery) -> None:
    _too_early(it, _line(it, 1, "completed", on_the_web=True), 1)


@plant("S9 limit of a job")
def _(it: Surgery) -> None:
    job = next(row for row in it.jobs() if row.get("concurrency"))
    _too_early(it, [row for row in it.runs() if row["jobId"] == job["jobId"]], 2)


@plant("S9 limit of a tenant")
def _(it: Surgery) -> None:
    _too_early(it, it.dump.runs[CROWDED], CROWD)


@plant("S9 two instants of a queue at once")
def _(it: Surgery) -> None:
    rows = [row for row in _queue(it, "queueOne") if row["status"] == "completed"]
    waited = next(row for row, before in zip(rows[1:], rows, strict=False) if _made(row) + 0.5 < _through(before))
    it.effects(waited, Phase.START)[0].at = _made(waited) + 0.1
    it.sort()


@plant("S10 order")
def _(it: Surgery) -> None:
    """The third of a queue was served before the second."""
    _, second, third, _ = _line(it, 1, "completed")
    gap = it.effects(third)[0].at - it.effects(second)[0].at
    it.move(second, gap)
    it.move(third, -gap)


@plant("S10 began while the one before waited for its retry")
def _(it: Surgery) -> None:
    first, second, *_ = _line(it, 1, "failed", "completed")
    failed = seconds(it.attempts(first)[0]["finishedAt"])
    # The second was through before the first was tried again.
    start, end, *_ = it.effects(second, Phase.START, Phase.END)
    start.at, end.at = failed + 0.07, failed + 0.08
    it.attempts(second)[0] |= {"startedAt": rfc3339(start.at), "finishedAt": rfc3339(end.at)}
    it.sort()


@plant("S3 skipped though nobody waited")
def _(it: Surgery) -> None:
    """Of a job whose instants wait, one at a time, the first that would have waited was skipped."""
    rows = _queue(it, "queueOne")
    skips = [seconds(row["finishedAt"]) for row in rows if row["status"] == "skipped"]
    late = BOUNDS.straggler + 0.5
    clear = [at for at in skips if all(abs(_through(row) - at) > late for row in rows)]
    there = ([row for row in rows if seconds(row["createdAt"]) < at < _through(row)] for at in clear)
    _, waiting = next(found for found in there if len(found) == 2)
    it.erase(waiting)


@plant("S2 left behind")
def _(it: Surgery) -> None:
    it.evidence.left_behind = 1


@plant("S2 left behind for a while")
def _(it: Surgery) -> None:
    it.dump.uncalled = 1


def _made(row: Row) -> float:
    return seconds(row["createdAt"])


def _through(row: Row) -> float:
    return seconds(row["finishedAt"]) if row["status"] == "completed" else 0.0
