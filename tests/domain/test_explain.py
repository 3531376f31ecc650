"""Explanations: every gate once, one of them blocks and comes first, or there is an estimate."""

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from foliot.domain import explain_job
from foliot.domain.capacity import Fleet, Line
from foliot.domain.explain_run import WAY, explain_run
from foliot.domain.gates import COUNTED, Basis, Code, Stand, ahead_text, span_text
from foliot.domain.job import Gate, Overlap
from foliot.domain.job_facts import JobFacts, Other, Previous
from foliot.domain.misfire import CatchUp, Mode
from foliot.domain.run_facts import JobStand, Parent, RunFacts
from foliot.domain.schedule import Cron, Every
from foliot.domain.states import FINISHED, State
from world import utc

NOW = utc("2026-03-02 12:00")
HOUR = timedelta(hours=1)
instants = st.timedeltas(-30 * HOUR, 30 * HOUR).map(lambda off: NOW + off)
counts = st.integers(0, COUNTED + 1)
fleets = st.builds(
    Fleet,
    queue=st.just("default"),
    group=st.sampled_from(["fn:noop", "http"]),
    paused_at=st.none() | instants,
    queue_workers=st.integers(0, 3),
    handler_workers=st.integers(0, 3),
    labels=st.sampled_from([(), ("gpu",), ("eu", "gpu")]),
    others=st.integers(0, 3),
    last_seen=st.none() | instants,
    places=st.integers(0, 3),
    busy=st.integers(0, 3),
    rate=st.just(0.0) | st.floats(1e-9, 1e6),
)
lines = st.builds(
    Line,
    number=st.integers(1, 3),
    capacity=st.integers(1, 5),
    going=st.integers(0, 5),
    ahead=counts,
    since=st.none() | instants,
    seat=st.none() | st.integers(0, 2),
)
runs = st.builds(
    RunFacts,
    now=st.just(NOW),
    run=st.integers(1, 2**40),
    state=st.sampled_from(State),
    scheduled_at=instants,
    due_at=instants,
    max_retries=st.integers(0, 3),
    attempt=st.integers(0, 3),
    job=st.none() | st.builds(JobStand, st.just(7), st.just("report"), st.sampled_from(Gate), st.none() | instants),
    error=st.none() | st.sampled_from(["", "boom", "Traceback\nValueError: no", "the previous run was still going"]),
    error_class=st.none() | st.sampled_from(["quarantined", "ValueError"]),
    mark=st.integers(-1, 5),
    cancel_asked=st.none() | instants,
    outside_until=st.none() | instants,
    waits_for_parents=st.booleans(),
    parents=st.lists(st.builds(Parent, st.integers(1, 99), st.booleans(), st.just("load")), max_size=5).map(tuple),
    lines=st.lists(lines, max_size=3, unique_by=lambda line: line.number).map(tuple),
    fleet=st.none() | fleets,
    ahead=st.none() | counts,
    takes=st.none() | st.timedeltas(timedelta(), timedelta(days=7)),
    schedulers=st.integers(0, 2),
)
others = st.lists(st.builds(Other, st.integers(1, 99), st.just("load")), max_size=2).map(tuple)
jobs = st.builds(
    JobFacts,
    now=st.just(NOW),
    job=st.just(7),
    name=st.just("report"),
    gate=st.sampled_from(Gate),
    fleet=fleets,
    recurrence=st.none()
    | st.sampled_from([Every(HOUR), Cron("30 9 * * MON", "Europe/Berlin"), Every(timedelta(seconds=1))]),
    next_at=st.none() | instants,
    after=st.none() | instants,
    until=st.none() | instants,
    not_before=st.none() | instants,
    ends_at=st.none() | instants,
    max_runs=st.none() | st.integers(1, 5),
    runs_left=st.none() | st.integers(0, 5),
    catch_up=st.builds(CatchUp, st.sampled_from(Mode), st.timedeltas(timedelta(), 2 * HOUR)),
    phase=st.timedeltas(timedelta(), HOUR),
    overlap=st.sampled_from(Overlap),
    previous=st.none() | st.builds(Previous, st.integers(1, 99), instants, st.none() | instants),
    parents=others,
    held_roots=others,
    lines=st.lists(lines, max_size=3, unique_by=lambda line: line.number).map(tuple),
    schedulers=st.integers(0, 2),
    clock_behind=st.just(timedelta()) | st.just(HOUR),
)


def _check(explanation, way):
    assert sorted(gate.code for gate in explanation.gates) == sorted(way)
    first, *rest = explanation.gates
    assert all(gate.stand is not Stand.BLOCKING for gate in rest)
    order = [gate.code for gate in rest]
    assert order == [code for code in way if code in order]
    shut = [gate for gate in rest if gate.stand is Stand.CLOSED]
    assert first.stand is Stand.BLOCKING or not shut
    assert all(gate.says[0].isupper() or gate.says[0].isdigit() for gate in explanation.gates)
    assert all(gate.says.endswith(".") for gate in explanation.gates)
    if explanation.blocking is None:
        assert (explanation.estimate is None) == explanation.is_running
    else:
        assert explanation.sentence.startswith(explanation.blocking.says)


@given(runs)
def test_one_gate_of_a_run_blocks_and_comes_first_or_there_is_an_estimate(facts: RunFacts):
    explanation = explain_run(facts)
    _check(explanation, WAY)
    if facts.state in FINISHED:
        assert explanation.blocking is not None
        assert explanation.estimate is None
    if explanation.estimate is not None:
        assert explanation.estimate.at >= NOW


@given(jobs)
def test_one_gate_of_a_job_blocks_and_comes_first_or_there_is_an_estimate(facts: JobFacts):
    explanation = explain_job.explain_job(facts)
    _check(explanation, explain_job.WAY)
    if facts.gate is not Gate.OPEN:
        assert explanation.estimate is None


def _waiting(**known) -> RunFacts:
    usual = {"now": NOW, "run": 1, "state": State.READY, "scheduled_at": NOW, "due_at": NOW, "max_retries": 3}
    fleet = Fleet(queue="default", group="http", queue_workers=1, handler_workers=1, **known.pop("fleet", {}))
    return RunFacts(**{**usual, "fleet": fleet, "schedulers": 1, "ahead": 0, **known})


def test_an_estimate_goes_by_the_rate_then_by_how_long_such_runs_take_then_says_nothing():
    full = {"places": 4, "busy": 4}
    by_rate = explain_run(_waiting(ahead=9, takes=HOUR, fleet={**full, "rate": 2.0})).estimate
    assert by_rate == (NOW + timedelta(seconds=5), Basis.RATE)
    by_durations = explain_run(_waiting(ahead=9, takes=HOUR, fleet=full)).estimate
    assert by_durations == (NOW + 10 * HOUR / 4, Basis.DURATIONS)
    assert explain_run(_waiting(ahead=9, fleet=full)).estimate is None
    assert explain_run(_waiting(ahead=COUNTED + 1, fleet={**full, "rate": 2.0})).estimate is None


def test_what_waits_for_somebody_has_no_estimate_even_if_time_comes_first():
    early = {"state": State.SCHEDULED, "due_at": NOW + HOUR, "ahead": None}
    assert explain_run(_waiting(**early)).estimate == (NOW + HOUR, Basis.DUE)
    paused = explain_run(_waiting(**early, fleet={"paused_at": NOW}))
    assert (paused.blocking.code, paused.estimate) == (Code.DUE, None)
    assert next(gate for gate in paused.gates if gate.code is Code.QUEUE).stand is Stand.CLOSED


def test_numbers_are_told_as_people_say_them():
    assert [ahead_text(n) for n in (0, 1, 1234, COUNTED + 1)] == [
        "It is the next.", "1 is ahead.", "1,234 are ahead.", "More than 10,000 are ahead."
    ]  # fmt: skip
    spans = [timedelta(seconds=1.25), timedelta(seconds=90), timedelta(minutes=12), 3 * HOUR, 26.5 * HOUR, 96 * HOUR]
    assert [span_text(span) for span in spans] == ["1.2 s", "90 s", "12 min", "3 h", "26 h 30 min", "4 days"]
