"""Attempts that go on outside: ended by who was called, by their time, or not at all by anybody else."""

import asyncio
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from foliot.domain.errors import Conflict, InvalidField, Unauthorised
from foliot.domain.ids import encode
from foliot.domain.limits import Concurrency
from foliot.domain.outcome import SUCCEEDED, Ending, Failure, Outcome, Returned, Snoozed
from foliot.domain.seal import Voucher
from foliot.domain.states import State
from foliot.services.complete import Completer
from foliot.services.overdue import Overdue
from foliot.store import dispatch, fleet, outside
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.submission import NewRun
from foliot.store.vault import Vault
from foliot.wire.completion import CompletionBody, answer_of
from foliot.wire.run_views import RunView
from worker.making import NOW
from world import NOOP, Hand, World

HOUR = timedelta(hours=1)
OUTSIDE = Outcome.entrusted(HOUR)


async def entrusted(world: World, worker: Hand | None = None, **fields: Any) -> tuple[Hand, Claimed, str]:
    """A worker, a run that it has called a handler for, and the token of that call."""
    await world.submit(1, msgspec.structs.replace(NOOP, **fields))
    worker = worker or await world.worker()
    (run,) = await worker.claim()
    assert await worker.conclude([run], OUTSIDE) == 1
    return worker, run, await token_of(world, worker, run)


async def token_of(world: World, worker: Hand, run: Claimed) -> str:
    return (await outside.voucher_of(world.database, worker.id)).token(run.id, run.tenant, run.fence)


async def seen(world: World, run: Claimed) -> RunView:
    return await world.insights.run(world.tenant, run.id)


async def time_is_up(world: World) -> int:
    await world.sql("UPDATE foliot.outside SET until = clock_timestamp()")
    overdue = Overdue(world.database, lambda: 0.0)
    try:
        return await overdue.run_once()
    finally:
        await overdue.close()


async def test_outside_nobody_holds_a_run_and_it_is_shown_until_when_it_is_waited_for(world: World):
    worker, run, _ = await entrusted(world)
    await dispatch.forget(worker.line, worker.id, [run.fence])
    view = await seen(world, run)
    assert (view.status, view.state, view.attempts) == ("running", "running", 1)
    assert view.worker_id == encode("wrk", worker.id)
    assert "outside" in view.waiting_for
    assert HOUR - timedelta(minutes=5) < view.complete_by - view.started_at <= HOUR + timedelta(minutes=5)
    (attempt,) = (await world.insights.attempts(world.tenant, run=run.id, limit=5, cursor=None)).items
    assert (attempt.status, attempt.fence) == ("running", run.fence)
    await worker.die()
    assert (await fleet.reap(worker.line)).returned == 0
    assert (await seen(world, run)).state == "running"


async def test_the_old_claim_covers_it_no_more_and_a_repeated_word_is_no_loss(world: World):
    worker, run, _ = await entrusted(world)
    assert await worker.settle([run]) == await worker.conclude([run], OUTSIDE) == 0
    for outcome, is_ours in ((OUTSIDE, True), (SUCCEEDED, False)):
        found = await dispatch.settled(worker.line, worker.id, [Settlement(run, NOW, outcome)])
        assert bool(found) == is_ours


@pytest.mark.parametrize(
    ("answer", "ending", "state", "failures"),
    [
        (None, Ending.COMPLETED, State.SUCCEEDED, None),
        (Failure("not yet"), Ending.FAILED, State.SCHEDULED, 1),
        (Failure("never", permanent=True), Ending.FAILED, State.DEAD, None),
        (Snoozed(HOUR, "too early"), Ending.SNOOZED, State.SCHEDULED, 0),
    ],
    ids=["succeeded", "failed", "permanent", "snoozed"],
)
async def test_the_word_of_who_was_called_ends_it(
    world: World, answer: Any, ending: Ending, state: State, failures: int | None
):
    _, run, token = await entrusted(world)
    ended = await world.completer.complete(run.id, token, answer)
    assert (ended.ending, ended.state) == (ending, state)
    assert await world.completer.complete(run.id, token, answer) == ended, "said again, it is answered as before"
    assert (await world.count("outside"), await world.count("history")) == (0, 1)
    assert (await seen(world, run)).state == state.word
    assert await world.count("dead_letter") == (state is State.DEAD)
    assert await world.value("SELECT attempt FROM run WHERE id = $1", run.id) == failures
    (row,) = await world.sql("SELECT fence, worker, attempt FROM history")
    assert tuple(row) == (run.fence, 1, 1)
    with pytest.raises(Conflict, match=f"it ended as {ending.word}"):
        await world.completer.complete(
            run.id, token, None if ending is not Ending.COMPLETED else Failure("no, it failed")
        )
    (attempt,) = (await world.insights.attempts(world.tenant, run=run.id, limit=5, cursor=None)).items
    assert attempt.late_result is not None


async def test_a_small_result_is_kept_and_shown(world: World):
    _, run, token = await entrusted(world)
    await world.completer.complete(run.id, token, Returned(b'{"rows":7}'))
    assert bytes((await seen(world, run)).result) == b'{"rows":7}'


@pytest.mark.parametrize(
    "payload", [b'{"token": {"$secret": "billing"}}', b"{}"], ids=["in the payload", "in a header"]
)
async def test_whoever_was_called_and_quotes_its_secrets_is_not_quoted(sealed: World, payload: bytes):
    await sealed.secrets.put(sealed.tenant, "billing", "hunter2-of-billing")
    headers: dict[str, Any] = {"Authorization": "Bearer inline-swordfish"}
    if payload == b"{}":
        headers["X-Billing"] = {"$secret": "billing"}
    target = {"url": "http://127.0.0.1:9/", "headers": headers}
    spec = await sealed.specs.intern(sealed.tenant, NOOP)
    await sealed.submitter.submit([NewRun(spec, payload, msgspec.json.encode(target))])
    worker = await sealed.worker()
    (run,) = await worker.claim()
    await worker.conclude([run], OUTSIDE)
    token = await token_of(sealed, worker, run)
    quoted = f"I was called with hunter2-of-billing, inline-swordfish and {token}"
    await sealed.completer.complete(run.id, token, Returned(msgspec.json.encode([quoted])))
    assert bytes((await seen(sealed, run)).result) == b'["I was called with [secret], [secret] and [secret]"]'
    with pytest.raises(Conflict):
        await sealed.completer.complete(run.id, token, Failure(quoted))
    (attempt,) = (await sealed.insights.attempts(sealed.tenant, run=run.id, limit=5, cursor=None)).items
    assert attempt.late_result.error_message == "I was called with [secret], [secret] and [secret]"


async def test_what_cannot_be_looked_through_for_secrets_is_left_out_of_its_end(world: World):
    await world.secrets.put(world.tenant, "billing", "hunter2-of-billing")
    _, run, token = await entrusted(world, max_retries=0)
    await world.sql("UPDATE foliot.run SET payload = $1", b'{"$secret": "billing"}')
    keyless = Completer(world.database, world.hints.append, vault=Vault(world.database))
    ended = await keyless.complete(run.id, token, Failure("hunter2-of-billing"))
    assert (ended.ending, ended.state) == (Ending.FAILED, State.DEAD)
    assert "no master key" in (await seen(world, run)).error_message


async def test_when_its_time_is_up_it_has_timed_out_is_tried_again_and_the_late_word_does_not_count(world: World):
    worker, run, token = await entrusted(world, timeout=HOUR)
    assert await time_is_up(world) == 1
    assert await time_is_up(world) == 0
    (row,) = await world.sql("SELECT ending, state, error, error_class, fence FROM history")
    assert (row["ending"], row["state"], row["error_class"]) == (Ending.TIMED_OUT, State.SCHEDULED, "timeout")
    assert (row["error"][:22], row["fence"]) == ("timed out after 3600 s", run.fence)
    with pytest.raises(Conflict, match="it ended as timed_out"):
        await world.completer.complete(run.id, token, None)
    await world.sql("UPDATE foliot.run SET due_at = clock_timestamp() WHERE id = $1", run.id)
    await world.promoter.run_once()
    (again,) = await worker.claim()
    assert (again.id, again.attempt, again.failures) == (run.id, 1, 1)
    assert again.fence > run.fence
    with pytest.raises(Conflict, match="timed_out"):
        await world.completer.complete(run.id, token, None)
    assert await worker.settle([again]) == 1


async def test_nobody_ends_what_is_not_his(world: World):
    worker, run, token = await entrusted(world)
    _, theirs, _ = await entrusted(world, worker)
    stolen = Voucher(worker.id + 1, (await outside.voucher_of(world.database, worker.id + 1)).key)
    wrong = {
        "another run's": (theirs.id, token),
        "another worker's": (run.id, stolen.token(run.id, run.tenant, run.fence)),
        "made without a key": (run.id, Voucher(worker.id, b"0" * 32).token(run.id, run.tenant, run.fence)),
        "nothing": (run.id, ""),
        "an API key": (run.id, world.key),
    }
    for number, shown in wrong.values():
        with pytest.raises((Unauthorised, Conflict)):
            await world.completer.complete(number, shown, None)
    older = (await outside.voucher_of(world.database, worker.id)).token(run.id, run.tenant, run.fence - 1)
    with pytest.raises(Conflict, match="nothing is known"):
        await world.completer.complete(run.id, older, None)
    assert (await world.count("outside"), await world.count("history")) == (2, 0)


async def test_who_is_done_before_his_worker_has_said_that_he_goes_on_is_done(world: World):
    """The word of the worker may be on its way when a quick handler calls."""
    await world.submit(2)
    worker = await world.worker()
    runs = await worker.claim()
    for run, answer in zip(runs, (None, Failure("no")), strict=True):
        await world.completer.complete(run.id, await token_of(world, worker, run), answer)
    assert await worker.conclude(runs, OUTSIDE) == 0
    assert len(await dispatch.settled(worker.line, worker.id, [Settlement(run, NOW, OUTSIDE) for run in runs])) == 2
    assert await world.count("outside") == 0


async def test_of_a_word_and_the_end_of_its_time_one_wins_and_the_other_is_told(world: World):
    _, run, token = await entrusted(world)
    async with world.unfinished() as first:
        late = Outcome.again(Ending.TIMED_OUT, "too late", HOUR, "timeout")
        assert await dispatch.conclude_outside(first, 1, [Settlement(run, NOW, late)]) == 1
        second = asyncio.ensure_future(world.completer.complete(run.id, token, None))
        await world.until_waiting()
    with pytest.raises(Conflict, match="it ended as timed_out"):
        await second
    assert await world.count("history") == 1


@pytest.mark.parametrize("deed", ["word", "time", "cancel"])
async def test_outside_a_run_keeps_its_seat_and_hands_it_over_when_it_ends(world: World, deed: str):
    first, second = await world.submit(2, msgspec.structs.replace(NOOP, concurrency=Concurrency(1), max_retries=0))
    worker = await world.worker()
    (run,) = await worker.claim()
    assert await worker.conclude([run], OUTSIDE) == 1
    assert await worker.claim() == []
    match deed:
        case "word":
            await world.completer.complete(first, await token_of(world, worker, run), None)
        case "time":
            assert await time_is_up(world) == 1
        case "cancel":
            await world.canceller.cancel(world.tenant, first)
    assert [each.id for each in await worker.claim()] == [second]


@pytest.mark.parametrize("deed", ["the run", "its job"])
async def test_nobody_is_asked_to_stop_outside_it_is_cancelled_at_once_and_who_calls_later_is_told(
    world: World, deed: str
):
    job = await world.job_id(onDemand=True)
    await world.submit(1, job=job)
    worker = await world.worker()
    (run,) = await worker.claim()
    await worker.conclude([run], OUTSIDE)
    await (
        world.canceller.cancel(world.tenant, run.id) if deed == "the run" else world.control.cancel(world.tenant, job)
    )
    view = await seen(world, run)
    assert (view.state, view.attempts, "cancelled" in view.error_message) == ("cancelled", 1, True)
    with pytest.raises(Conflict, match="it ended as cancelled"):
        await world.completer.complete(run.id, await token_of(world, worker, run), None)


async def test_who_was_asked_to_stop_and_goes_on_outside_does_not(world: World):
    await world.submit(1)
    worker = await world.worker()
    (run,) = await worker.claim()
    await world.canceller.cancel(world.tenant, run.id)
    assert await worker.conclude([run], OUTSIDE) == 1
    overdue = Overdue(world.database)
    assert await overdue.run_once() == 1
    await overdue.close()
    (row,) = await world.sql("SELECT ending, state FROM history")
    assert tuple(row) == (Ending.CANCELLED, State.CANCELLED)


async def test_a_run_of_a_job_that_was_paused_meanwhile_does_not_start_again(world: World):
    job = await world.job_id(onDemand=True)
    await world.submit(1, job=job)
    worker = await world.worker()
    (run,) = await worker.claim()
    await worker.conclude([run], OUTSIDE)
    await world.control.pause(world.tenant, job)
    await world.completer.complete(run.id, await token_of(world, worker, run), Failure("later"))
    await world.sql("UPDATE foliot.run SET due_at = clock_timestamp() WHERE id = $1", run.id)
    await world.promoter.run_once()
    assert await worker.claim() == []
    assert (await seen(world, run)).state == "blocked"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"outcome": "succeeded", "error": "x"}, "error"),
        ({"outcome": "failed", "result": 1}, "result"),
        ({"outcome": "snoozed"}, "retryAfter"),
        ({"outcome": "snoozed", "retryAfter": 0}, "retryAfter"),
        ({"outcome": "failed", "retryAfter": "P2D"}, "retryAfter"),
        ({"outcome": "succeeded", "result": "x" * 5_000}, "result"),
    ],
)
def test_what_does_not_go_together_is_refused(body: dict[str, Any], field: str):
    with pytest.raises(InvalidField) as refused:
        answer_of(msgspec.json.decode(msgspec.json.encode(body), type=CompletionBody))
    assert refused.value.field == field


def test_what_is_said_is_what_is_meant():
    def said(**body: Any) -> Any:
        return answer_of(msgspec.json.decode(msgspec.json.encode(body), type=CompletionBody))

    assert said(outcome="succeeded") is None
    assert said(outcome="succeeded", result=[1]) == Returned(b"[1]")
    failed = said(outcome="failed", error="why", errorClass="shop.Broke", retryAfter="PT1M")
    assert failed == Failure("why", retry_after=timedelta(minutes=1), classes=("shop.Broke",))
    assert said(outcome="permanent") == Failure("its handler said that it failed", permanent=True, classes=("Failed",))
    assert said(outcome="snoozed", retryAfter=60, error="busy") == Snoozed(timedelta(minutes=1), "busy")
