"""Jobs and specs: what kind a draft is, and that equal specs are one."""

from datetime import UTC, datetime, timedelta

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errorclass import RetryRule
from foliot.domain.fairness import Priority
from foliot.domain.job import Draft, Gate, Kind
from foliot.domain.retry import Backoff
from foliot.domain.schedule import Every
from foliot.domain.spec import CommandHandler, ContainerHandler, FunctionHandler, HttpHandler, Resources, Spec, digest

NOOP = Spec(handler=FunctionHandler("noop"))
SPECS = st.builds(
    Spec,
    handler=st.one_of(
        st.builds(FunctionHandler, name=st.sampled_from(["a", "b"])),
        st.builds(CommandHandler, argv=st.lists(st.text(max_size=3), max_size=3).map(tuple)),
        st.builds(
            ContainerHandler,
            image=st.sampled_from(["", "acme/report"]),
            resources=st.builds(Resources, memory_mib=st.none() | st.just(64)),
        ),
        st.builds(
            HttpHandler,
            url=st.none() | st.just("https://example.com/"),
            method=st.sampled_from(["GET", "POST"]),
            headers=st.dictionaries(st.sampled_from(["A", "B"]), st.text(max_size=3)),
        ),
    ),
    queue=st.sampled_from(["default", "slow"]),
    priority=st.sampled_from(Priority),
    max_retries=st.integers(0, 1000),
    backoff=st.builds(Backoff, initial=st.timedeltas(timedelta(0), timedelta(minutes=10))),
    timeout=st.timedeltas(timedelta(seconds=1), timedelta(days=7)),
    retry=st.just(msgspec.UNSET)
    | st.lists(
        st.builds(
            RetryRule,
            on=st.sampled_from([("A",), ("A", "http:5xx")]),
            max_retries=st.none() | st.integers(0, 9),
            backoff=st.none() | st.just(Backoff()),
        ),
        min_size=1,
        max_size=2,
    ).map(tuple),
)


def _draft(**fields) -> Draft:
    return Draft(name="x", key=None, spec=NOOP, payload=b"", labels={}, timing={}, **fields)


def test_what_makes_a_job_run_decides_its_kind():
    at = datetime(2026, 1, 1, tzinfo=UTC)
    assert _draft().kind is Kind.ON_DEMAND
    assert _draft(run_at=at).kind is Kind.ONE_TIME
    assert _draft(recurrence=Every(timedelta(hours=1)), not_before=at).kind is Kind.RECURRING


def test_stored_numbers_never_change_meaning():
    assert {kind.word: kind.value for kind in Kind} == {"on_demand": 0, "one_time": 1, "recurring": 2}
    assert {gate.name: gate.value for gate in Gate} == {"OPEN": 0, "PAUSED": 1, "CANCELLED": 2}


@given(SPECS)
def test_a_spec_is_read_back_as_it_was_written(spec: Spec):
    assert Spec.parse(spec.body()) == spec


@given(SPECS, SPECS)
def test_specs_have_the_same_name_if_and_only_if_they_are_equal(one: Spec, other: Spec):
    assert (digest(one.body()) == digest(other.body())) == (one == other)


def test_the_order_of_headers_does_not_make_another_spec():
    one = Spec(handler=HttpHandler("https://a/", "POST", {"A": "1", "B": "2"}))
    other = Spec(handler=HttpHandler("https://a/", "POST", {"B": "2", "A": "1"}))
    assert one.body() == other.body()


def test_a_handler_tells_which_workers_can_serve_it():
    assert HttpHandler("https://a/").group == "http"
    assert FunctionHandler("send.mail").group == "fn:send.mail"
    assert CommandHandler(("/bin/report",)).group == "command"
    assert ContainerHandler("acme/report").group == "container"
