"""`foliot top`: one picture for people, one document for programs, and it goes on while nobody answers."""

import io
from collections.abc import Callable
from typing import Any

import pytest
from click import unstyle
from rich.console import Console

from cli.conftest import Shell
from foliot.cli.top import drawn, screen, watch
from foliot.sdk import ApiError
from world import World

QUEUE = {
    "name": "default", "pausedAt": None, "ready": 12, "running": 3, "rate": 4.25, "oldestAgeSeconds": 75.0,
    "workers": 1, "deadLetters": 2, "unserved": ["fn:load"],
}  # fmt: skip
WORKER = {
    "workerId": "wrk_06w3dv28g1000", "name": "a-machine-with-a-long-name.internal:12345", "state": "live",
    "running": 3, "concurrency": 50, "queues": ["default", "a-queue-with-a-long-name", "bulk"],
}  # fmt: skip
RUN = {
    "runId": "run_06w3dv28g1000", "handler": "https://reports.example/" + "x" * 80, "attempts": 1,
    "startedAt": "2026-11-15T20:15:00.25Z", "jobId": "job_06w3dv28g1000",
}  # fmt: skip
SIGHT: dict[str, Any] = {
    "at": "2026-11-15T20:16:25Z", "url": "http://127.0.0.1:7070", "schedulers": 1, "overdueSchedules": 0,
    "shardsUnheld": 0, "clockBehindSeconds": 0, "deadLetters": 2, "ready": 12, "running": 3, "scheduled": 7,
    "rate": 4.25, "oldestAgeSeconds": 75.0, "liveWorkers": 1, "drainingWorkers": 0,
    "queues": [QUEUE], "workers": [WORKER], "runs": [RUN],
}  # fmt: skip


def picture(sight: dict[str, Any], width: int = 80, height: int | None = None) -> list[str]:
    return [unstyle(line) for line in drawn(sight, width, height)]


def test_the_picture_fits_and_ids_are_whole():
    lines = picture(SIGHT)
    assert max(map(len, lines)) <= 80
    text = "\n".join(lines)
    assert "12 ready, 3 running, 7 scheduled; 4.2 runs/s; oldest waits 1m 15s" in text
    assert "1 scheduler, 1 worker, 0 schedules overdue, 2 dead letters" in text
    assert all(each in text for each in ("wrk_06w3dv28g1000", "run_06w3dv28g1000", "1m 24s"))


@pytest.mark.parametrize("height", [10, 24, 50])
def test_no_more_is_shown_than_fits_and_the_rest_is_counted(height: int):
    many = {**SIGHT, "queues": [QUEUE] * 90, "workers": [WORKER] * 90, "runs": [RUN] * 90}
    lines = picture(many, height=height)
    assert len(lines) <= max(height, 23)
    assert sum(line.startswith("… and ") for line in lines) == 3


async def test_one_look_at_what_is_there(shell: Shell, world: World):
    await world.worker("default")
    await world.submit(3)
    seen = await shell.json("top", "--once")
    assert (seen["ready"], seen["running"], seen["liveWorkers"], seen["deadLetters"]) == (3, 0, 1, 0)
    assert [queue["name"] for queue in seen["queues"]] == ["default"]
    said = await shell("top")  # no terminal: once
    assert "3 ready, 0 running" in said
    assert "nothing runs" in said
    assert "\x1b" not in said


async def test_who_is_no_operator_sees_what_is_their_own(shell: Shell):
    made = await shell.json("key", "create", "acme", "--name", "look", "--role", "viewer")
    shell.environment["FOLIOT_KEY"] = made["key"]
    seen = await shell.json("top", "--once")
    assert (seen["queues"], seen["workers"], seen["ready"], seen["running"]) == (None, None, None, 0)
    assert "queues and workers are shown to an operator's key" in await shell("top", "--once")


def breaking_off(after: int) -> Callable[[], None]:
    left = iter(range(after))

    def pause() -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    return pause


def test_while_nobody_answers_the_last_picture_stays_and_says_so():
    answers: list[Any] = [ApiError(0, "cannot be reached"), SIGHT]
    shown: list[str] = []

    def again() -> Any:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    with pytest.raises(KeyboardInterrupt):
        watch(SIGHT, again, lambda sight, trouble: shown.append(trouble), breaking_off(2))
    assert shown == ["", "cannot be reached", ""]


def test_the_screen_is_drawn_and_given_back():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=80, height=24, highlight=False)
    with screen(console) as show:
        show(SIGHT, "")
        show(SIGHT, "cannot be reached")
    drawn_ = out.getvalue()
    assert "run_06w3dv28g1000" in drawn_
    assert "cannot be reached; this is from before" in drawn_
    assert drawn_.index("\x1b[?1049h") < drawn_.rindex("\x1b[?1049l")
