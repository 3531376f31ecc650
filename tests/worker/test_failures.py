"""What the log says of attempts that failed."""

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from foliot.domain.ids import encode
from foliot.domain.outcome import SUCCEEDED, Ending, Outcome
from foliot.store.dispatch import Settlement
from foliot.worker.failures import MOST, Failures
from foliot.worker.settler import Settler
from worker.making import NOW, MemoryCarrier, claimed

AGAIN = Outcome.again(Ending.FAILED, "Traceback: order 17 of Ms Smith", timedelta(seconds=2.5), "LookupError")


def settled(outcome: Outcome = AGAIN) -> Settlement:
    return Settlement(claimed(), NOW, outcome)


async def test_a_failure_is_told_when_it_is_on_record_and_a_success_is_not():
    said: list[Settlement] = []
    settler = Settler(MemoryCarrier(), lambda _: None, said.extend)
    failed, timed_out = settled(), settled(Outcome.dead(Ending.TIMED_OUT, "too slow", "timeout"))
    for each in (settled(SUCCEEDED), failed, settled(Outcome.released()), timed_out):
        settler.add(each)
    assert said == []
    await settler.run_once()
    assert said == [failed, timed_out]


@pytest.mark.parametrize(
    ("outcome", "event", "kind"),
    [
        (AGAIN, "an attempt failed", "LookupError"),
        (Outcome.dead(Ending.TIMED_OUT, "too slow"), "a run failed for good: it is a dead letter", "timed_out"),
        (Outcome.unknown("stopped"), "a run ended, and nobody knows how", "unknown"),
    ],
)
def test_the_line_names_the_run_the_try_and_the_kind_of_error_and_not_its_words(
    outcome: Outcome, event: str, kind: str
):
    failed = settled(outcome)
    with capture_logs() as lines:
        Failures().tell([failed])
    (line,) = [each for each in lines if each["log_level"] == "warning"]
    assert (line["event"], line["kind"]) == (event, kind)
    assert (line["run"], line["attempt"]) == (encode("run", failed.run.id), failed.run.attempt + 1)
    assert line.get("again_in") == ("2.5s" if outcome is AGAIN else None)
    assert "Smith" not in str(line)


def test_a_flood_is_counted_instead_of_told():
    now = 100.0
    failures = Failures(lambda: now)
    with capture_logs() as lines:
        failures.tell([settled()] * (MOST - 1))
        failures.tell([settled()] * 500)
        now += 1
        failures.tell([settled()])
    told = [each for each in lines if each["log_level"] == "warning"]
    assert [each["event"] for each in told] == ["an attempt failed"] * MOST + [
        "further attempts failed",
        "an attempt failed",
    ]
    assert told[MOST]["attempts"] == 499
