"""The child itself: imports the application, waits for its one assignment, carries it out, answers, ends."""

import asyncio
import faulthandler
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import Executor as Threads
from concurrent.futures import Future
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

import msgspec
import uvloop

from foliot.domain.outcome import Answer, Failure
from foliot.domain.redaction import Redaction
from foliot.kit.clock import wall
from foliot.kit.hush import HUSH
from foliot.kit.settings import Settings
from foliot.kit.telemetry import start_logging
from foliot.sdk.apps import load_app
from foliot.sdk.desk import NOBODY, Desk
from foliot.sdk.worker import Worker
from foliot.worker.child.answer import CHANNEL, unpack_assignment
from foliot.worker.child.desk import ChildDesk
from foliot.worker.child.kernel import be_readable
from foliot.worker.executor import Assignment, Executor
from foliot.worker.functions import function_executors, is_coroutine_function

PATH: Final = "FOLIOT_CHILD_PATH"
"""Where the supervisor finds its modules."""


class Stopped(BaseException):
    """SIGTERM: the attempt is out of time, or no longer ours. What the handler cleans up on its way out, it may."""


def main(reference: str) -> None:
    channel = socket.socket(fileno=CHANNEL)
    channel.set_inheritable(False)
    desk = ChildDesk(channel)
    settings = Settings.read(os.environ)
    if settings.commands_same_user:
        be_readable(False)
    start_logging(process="worker", level=settings.log_level, json=settings.log_json)
    faulthandler.enable()
    if path := os.environ.pop(PATH, ""):
        sys.path[:] = path.split(os.pathsep)
    Worker.may_serve = False
    try:
        app = load_app(reference)
    except BaseException:  # noqa: BLE001 - whatever an application's import comes to, people want to read it
        desk.answer(Failure(f"{reference} cannot be imported in a process of its own:\n{traceback.format_exc()}"))
        desk.assignment()  # whoever hangs up first must not be the one with something to say
        return
    if assigned := desk.assignment():
        desk.listen()
        assignment = msgspec.structs.replace(unpack_assignment(assigned), started_at=wall())
        desk.extend(assignment)
        hide = Redaction(() if assignment.given is None else assignment.given.secrets).hide
        with HUSH.using(hide):
            desk.answer(carry_out(app, assignment, desk))


def carry_out(app: Worker, assignment: Assignment, desk: Desk = NOBODY) -> Answer:
    name = assignment.spec.handler.label
    task = app.tasks.get(name)
    if task is None:
        return Failure(
            f"{name!r} is not registered when the application is imported by itself (register it at import, not later)"
        )
    main_thread = MainThread()
    execute = function_executors({name: task.function}, main_thread, desk=desk)[name]
    if is_coroutine_function(task.function):
        return uvloop.run(_on_loop(execute, assignment, desk))
    # A plain function has the main thread for itself, as in any script: signals, and loops of its own, work there.
    answers: list[Answer] = []
    loop = Thread(target=lambda: answers.append(main_thread.served(lambda: uvloop.run(_await(execute, assignment)))))
    signal.signal(signal.SIGTERM, partial(_stop, desk))
    loop.start()
    main_thread.serve()
    loop.join()
    return answers[0]


async def _on_loop(execute: Executor, assignment: Assignment, desk: Desk) -> Answer:
    attempt = asyncio.ensure_future(execute(assignment))

    def stop() -> None:
        desk.stop()
        attempt.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop)
    try:
        return await attempt
    except asyncio.CancelledError:  # by our supervisor, which does not listen any more, or by itself
        return Failure("the handler cancelled itself")


async def _await(execute: Executor, assignment: Assignment) -> Answer:
    return await execute(assignment)


def _stop(desk: Desk, *_: object) -> None:
    desk.stop()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: a second one would break into the clean-up
    raise Stopped


class MainThread(Threads):
    """Runs what others submit in the main thread."""

    def __init__(self) -> None:
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> "Future[Any]":
        future: Future[Any] = Future()
        self._work.put((future, lambda: function(*arguments, **named)))
        return future

    def served(self, loop: Callable[[], Answer]) -> Answer:
        """What `loop` returns, with the main thread at its service meanwhile."""
        try:
            return loop()
        finally:
            self._work.put(None)

    def serve(self) -> None:
        """Call from the main thread; returns when nobody needs it any more."""
        while (work := self._work.get()) is not None:
            future, call = work
            try:
                future.set_result(call())
            except BaseException as error:  # noqa: BLE001 - it goes to who submitted it
                frames = error.__traceback__
                own = 2  # this function's and the lambda's say nothing about the handler
                for _ in range(own):
                    frames = frames.tb_next if frames is not None else None
                future.set_exception(error.with_traceback(frames))


if __name__ == "__main__":
    main(sys.argv[1])
