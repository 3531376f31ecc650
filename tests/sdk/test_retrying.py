"""What a client sends again, when, and for how long."""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from foliot import AsyncFoliot, Foliot, QuotaExceeded, TooManyRequests, Unavailable, Unreachable, __version__
from foliot.sdk.errors import ApiError
from foliot.sdk.protocol import Request, seconds_of
from foliot.sdk.retrying import Patience, Tries
from kit.launching import deaf_port

KEY = f"fol_{'a' * 12}_{'b' * 43}"
Reply = Callable[[BaseHTTPRequestHandler], None]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@given(
    failures=some.lists(some.sampled_from([(0, None), (429, 0.5), (429, 7), (503, None), (502, None)]), max_size=12),
    timeout=some.floats(0.1, 60),
    max_retries=some.integers(0, 8),
    chance=some.floats(0, 0.999),
)
def test_tries_end_by_number_and_by_time_and_wait_as_long_as_they_were_told(failures, timeout, max_retries, chance):
    clock = Clock()
    tries = Tries(Request("POST", "/v1/runs"), Patience(timeout, max_retries), clock, lambda: chance)
    first, sent = tries.request.key, 1
    for status, retry_after in failures:
        error = Unreachable("gone") if status == 0 else ApiError(status, "later", retry_after=retry_after)
        try:
            pause = tries.pause_after(error)
        except ApiError:
            break
        assert pause >= (retry_after or 0)
        clock.now += pause
        sent += 1
        assert clock.now < timeout
        assert tries.request.key == first
    assert sent <= max_retries + 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 412, 422, 500])
def test_what_would_be_answered_the_same_again_is_not_sent_again(status: int):
    with pytest.raises(ApiError):
        Tries(Request("GET", "/v1/jobs"), Patience()).pause_after(ApiError(status, "no"))


def test_a_change_of_one_version_is_sent_again_only_if_it_cannot_have_been_made():
    once = Request("PATCH", "/v1/jobs/x", version=3)
    for error in (Unreachable("lost"), ApiError(503, "later")):
        with pytest.raises(ApiError):
            Tries(once, Patience()).pause_after(error)
    for error in (Unreachable("refused", was_sent=False), ApiError(429, "later")):
        assert Tries(once, Patience()).pause_after(error) >= 0


@pytest.mark.parametrize(
    ("header", "seconds"), [("3", 3.0), (" 0 ", 0.0), (None, None), ("soon", None), ("-1", None), ("9" * 20, None)]
)
def test_retry_after_is_read_as_seconds(header: str | None, seconds: float | None):
    assert seconds_of(header) == seconds


class Server(ThreadingHTTPServer):
    """Answers as it is told, request by request, and remembers what it was sent."""

    daemon_threads = True

    def __init__(self, replies: list[Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = iter(replies)
        self.sent: list[tuple[str, dict[str, str]]] = []
        self.connections: set[tuple[str, int]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients hang up in these tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.sent.append((self.command, dict(self.headers)))
        self.server.connections.add(self.client_address)
        next(self.server.replies)(self)

    do_GET = do_POST  # noqa: N815 - the library's spelling

    def log_message(self, *_: Any) -> None: ...


def says(status: int, body: bytes = b"{}", **headers: str) -> Reply:
    def reply(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    return reply


def hangs_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


RUN = says(201, b'{"runId": "run_1"}')


@contextmanager
def serving(*replies: Reply) -> Iterator[Server]:
    with Server(list(replies)) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def test_a_change_is_sent_again_with_the_key_that_it_had_first():
    with serving(says(503), hangs_up, says(429, Retry_After="0"), RUN) as server, Foliot(server.url, KEY) as client:
        assert client.submit("f").id == "run_1"
        keys = {headers["Idempotency-Key"] for _, headers in server.sent}
        assert (len(server.sent), len(keys)) == (4, 1)
        assert server.sent[0][1]["User-Agent"].startswith(f"foliot/{__version__} Python/3.")


async def test_so_does_the_client_for_the_event_loop():
    with serving(says(503), hangs_up, says(429, Retry_After="0"), RUN) as server:
        async with AsyncFoliot(server.url, KEY) as client:
            assert (await client.submit("f", idempotency_key="mine")).id == "run_1"
        assert [headers["Idempotency-Key"] for _, headers in server.sent] == ["mine"] * 4


def test_who_shall_wait_longer_than_the_call_may_take_is_told_at_once():
    with serving(says(429, Retry_After="3600")) as server, Foliot(server.url, KEY) as client:
        with pytest.raises(TooManyRequests) as caught:
            client.submit("f")
        assert (caught.value.retry_after, len(server.sent)) == (3600, 1)


def test_a_quota_is_told_at_once_because_waiting_alone_does_not_help():
    problem = b'{"type": "urn:foliot:problem:quota-exceeded", "title": "", "status": 429, "detail": "", "hint": ""}'
    with serving(says(429, problem, Retry_After="0")) as server, Foliot(server.url, KEY) as client:
        with pytest.raises(QuotaExceeded) as caught:
            client.create_job("j", "f")
        assert isinstance(caught.value, TooManyRequests)
        assert (caught.value.status, len(server.sent)) == (429, 1)


def test_retries_can_be_turned_off():
    with serving(says(503)) as server, Foliot(server.url, KEY, max_retries=0) as client, pytest.raises(Unavailable):
        client.get_job("x")


def test_connections_are_kept_and_one_that_was_hung_up_meanwhile_is_no_failure():
    def leaves(handler: BaseHTTPRequestHandler) -> None:
        RUN(handler)
        handler.close_connection = True  # without saying so

    with serving(RUN, leaves, RUN) as server, Foliot(server.url, KEY, max_retries=0) as client:
        for _ in range(3):
            client.submit("f")
        assert len(server.connections) == 2


def test_threads_share_a_client_and_each_has_a_connection_of_its_own():
    barrier = threading.Barrier(4, timeout=30)

    def together(handler: BaseHTTPRequestHandler) -> None:
        barrier.wait()
        RUN(handler)

    with serving(*[together] * 4) as server, Foliot(server.url, KEY) as client:
        threads = [threading.Thread(target=client.submit, args=("f",)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.connections) == 4


def test_a_forked_process_opens_connections_of_its_own(monkeypatch: pytest.MonkeyPatch):
    with serving(RUN, RUN) as server, Foliot(server.url, KEY) as client:
        client.submit("f")
        monkeypatch.setattr(os, "getpid", lambda: 0)
        client.submit("f")
        assert len(server.connections) == 2


def silent(handler: BaseHTTPRequestHandler) -> None:
    """Until the client gives up."""
    handler.rfile.read(1)
    handler.close_connection = True


@pytest.mark.parametrize("reply", [silent, says(429, Retry_After="3600")], ids=["silence", "come again in an hour"])
def test_a_wait_ends_in_time_however_a_call_ends_and_nobody_is_hammered(monkeypatch: pytest.MonkeyPatch, reply: Reply):
    monkeypatch.setattr("foliot.sdk.watching.LAST_LOOK", 0.05)
    with serving(RUN, *[reply] * 20) as server, Foliot(server.url, KEY, timeout=3600) as client:
        run = client.submit("f")
        with pytest.raises(TimeoutError, match=r"run_1 was pending when it was last seen, and after 0\.2 s") as caught:
            run.wait(0.2)
        assert isinstance(caught.value.__cause__, ApiError)
        assert len(server.sent) < 6


def test_nobody_there_is_told_after_some_tries():
    with deaf_port() as port, pytest.raises(Unreachable) as caught:
        Foliot(f"http://127.0.0.1:{port}", KEY, timeout=0.2).change_job("x", if_version=3, name="y")
    assert not caught.value.was_sent
