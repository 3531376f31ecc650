"""HTTP targets as handlers: what they receive, and how their answer is judged."""

import asyncio
import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import aiohttp
import msgspec
import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st

from foliot.domain.egress import EVERYWHERE, Egress
from foliot.domain.ids import encode
from foliot.domain.outcome import Answer, Entrusted, Failure, Returned
from foliot.domain.retry import LONGEST_RETRY_AFTER
from foliot.domain.seal import Mac, Voucher, signature
from foliot.domain.spec import Spec
from foliot.worker.web import LARGEST_RESPONSE, _retry_after, http_executor, open_session
from kit.launching import deaf_port
from worker.conftest import Serve
from worker.making import NOW, PATIENCE, assignment, call, eventually

SIGNING = b"s" * 32
VOUCHER = Voucher(9, b"k" * 32)


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    async with open_session(10, egress=Egress.parse(["loopback", "public"])) as opened:
        yield opened


async def attempt(session: aiohttp.ClientSession, spec: Spec, **fields: object) -> Answer:
    async with asyncio.timeout(PATIENCE):
        return await http_executor(session, SIGNING, lambda: VOUCHER)(assignment(spec, **fields))


async def answered(serve: Serve, session: aiohttp.ClientSession, status: int, **headers: str) -> Answer:
    async def handler(_: web.Request) -> web.Response:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=status, text="" if status in {204, 304} else "because", headers=names)

    return await attempt(session, call(await serve(handler)))


async def test_a_target_is_told_which_run_and_attempt_it_is(serve: Serve, session: aiohttp.ClientSession):
    seen: list[web.Request] = []
    bodies: list[bytes] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.read())
        seen.append(request)
        return web.Response()

    url = await serve(handler)
    spec = call(url, headers={"X-Team": "growth", "user-agent": "ours"})
    assert await attempt(session, spec, id=5 << 22, job=6 << 22, attempt=1, fence=300) is None
    (request,) = seen
    run = encode("run", 5 << 22)
    assert request.method == "POST"
    assert request.headers["Idempotency-Key"] == request.headers["Foliot-Run"] == run
    assert request.headers["Foliot-Attempt"] == "2"
    assert request.headers["Foliot-Fence"] == "300"
    assert request.headers["Foliot-Scheduled-At"] == "2026-11-15T20:16:25Z"
    assert request.headers["Content-Type"] == "application/json"
    assert request.headers["X-Team"] == "growth"
    assert request.headers.getall("User-Agent") == ["ours"]
    assert msgspec.json.decode(bodies[0]) == {
        "runId": run,
        "jobId": encode("job", 6 << 22),
        "name": "report",
        "scheduledAt": "2026-11-15T20:16:25Z",
        "attempt": 2,
        "payload": {"n": 1},
    }


async def test_the_trace_parent_is_valid_and_one_trace_holds_all_attempts(serve: Serve, session: aiohttp.ClientSession):
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["traceparent"])
        return web.Response()

    spec = call(await serve(handler))
    await attempt(session, spec, id=5 << 22, fence=1)
    await attempt(session, spec, id=5 << 22, fence=2)
    parts = [re.fullmatch(r"00-([0-9a-f]{32})-([0-9a-f]{16})-01", value) for value in seen]
    assert all(parts)
    (first, second) = parts
    assert first[1] == second[1] != "0" * 32
    assert first[2] != second[2]
    assert "0" * 16 not in {first[2], second[2]}


async def test_address_and_headers_may_travel_with_the_run(serve: Serve, session: aiohttp.ClientSession):
    seen: list[tuple[str, str]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((request.path, request.headers["X-Own"]))
        return web.Response()

    url = await serve(handler)
    target = msgspec.json.encode({"url": f"{url}/of-this-run", "headers": {"X-Own": "1"}})
    assert await attempt(session, call(None), target=target) is None
    assert seen == [("/hook/of-this-run", "1")]


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_2xx_is_success(serve: Serve, session: aiohttp.ClientSession, status: int):
    assert await answered(serve, session, status) is None


@pytest.mark.parametrize(
    ("kind", "body", "kept"),
    [
        ("application/json", b'{"rows": 7}', b'{"rows": 7}'),
        ("application/problem+json", b"[1]", b"[1]"),
        ("application/json", b"null", None),
        ("application/json", b"{nonsense", None),
        ("application/json", b'"' + b"x" * 5_000 + b'"', None),
        ("text/plain", b"1", None),
    ],
)
async def test_a_small_answer_is_the_result(
    serve: Serve, session: aiohttp.ClientSession, kind: str, body: bytes, kept: bytes | None
):
    async def handler(_: web.Request) -> web.Response:
        return web.Response(body=body, content_type=kind)

    assert await attempt(session, call(await serve(handler))) == (None if kept is None else Returned(kept))


async def test_202_with_a_word_means_that_it_goes_on_outside_for_what_is_left_of_its_time(
    serve: Serve, session: aiohttp.ClientSession
):
    taken = await answered(serve, session, 202, Foliot_Complete="Later")
    assert isinstance(taken, Entrusted)
    assert timedelta(seconds=300 - PATIENCE) < taken.rest < timedelta(seconds=300)
    assert await answered(serve, session, 200, Foliot_Complete="later") is None
    assert await answered(serve, session, 202, Foliot_Complete="now") is None


async def test_calls_are_signed_and_carry_the_token_of_their_attempt(serve: Serve, session: aiohttp.ClientSession):
    seen: list[tuple[dict[str, str], bytes]] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append((dict(request.headers), await request.read()))
        return web.Response()

    await attempt(session, call(await serve(handler)), id=5 << 22, tenant=3, fence=300)
    ((headers, body),) = seen
    at = headers["webhook-timestamp"]
    assert (headers["webhook-id"], int(at)) == (encode("run", 5 << 22), int(NOW.timestamp()))
    assert headers["webhook-signature"] == signature(Mac(SIGNING), headers["webhook-id"], at, body)
    assert headers["Foliot-Token"] == VOUCHER.token(5 << 22, 3, 300)


async def test_secrets_of_a_call_that_its_target_quotes_are_not_kept(serve: Serve, session: aiohttp.ClientSession):
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=500, text="\n".join(f"{name}: {value}" for name, value in request.headers.items()))

    headers = {"Authorization": "Bearer hunter22", "X-Api-Key": "swordfish", "X-Team": "growth"}
    failure = await attempt(session, call(await serve(handler), headers=headers))
    assert isinstance(failure, Failure)
    for secret in ("hunter22", "swordfish", "fct_"):
        assert secret not in failure.error
    for known in ("growth", "Foliot-Run: run_", "Idempotency-Key: run_", "Authorization: [secret]"):
        assert known in failure.error


async def test_secrets_of_a_call_that_its_target_gives_back_are_not_in_the_result(
    serve: Serve, session: aiohttp.ClientSession
):
    async def handler(request: web.Request) -> web.Response:
        return web.json_response(dict(request.headers))

    headers = {"Authorization": "Bearer hunter22", "X-Api-Key": 'sword"fish', "X-Team": "growth"}
    answer = await attempt(session, call(await serve(handler), headers=headers))
    assert isinstance(answer, Returned)
    said = msgspec.json.decode(answer.result)
    assert (said["Authorization"], said["X-Api-Key"], said["Foliot-Token"]) == ("[secret]",) * 3
    assert (said["X-Team"], said["Foliot-Run"]) == ("growth", said["Idempotency-Key"])
    for secret in (b"hunter22", b"fish", b"fct_"):
        assert secret not in answer.result


async def test_of_one_host_no_more_are_called_at_once_than_the_operator_says(serve: Serve):
    going, most, opened = 0, 0, asyncio.Event()

    async def handler(_: web.Request) -> web.Response:
        nonlocal going, most
        going += 1
        most = max(most, going)
        await opened.wait()
        going -= 1
        return web.Response()

    url, elsewhere = await serve(handler), await serve(handler)
    async with open_session(10, per_host=2, egress=EVERYWHERE) as session:
        calls = [asyncio.ensure_future(attempt(session, call(each))) for each in (url, url, url, url, elsewhere)]
        await eventually(lambda: going == 3)
        opened.set()
        assert await asyncio.gather(*calls) == [None] * 5
    assert most == 3


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422, 451])
async def test_4xx_cannot_be_mended_by_trying_again(serve: Serve, session: aiohttp.ClientSession, status: int):
    failure = await answered(serve, session, status, Retry_After="5")
    classes = (f"http:{status}", "http:4xx")
    assert failure == Failure(
        f"answered {status}: because", permanent=True, retry_after=timedelta(seconds=5), classes=classes
    )


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 599])
async def test_the_rest_may_be_tried_again_and_not_before_it_asks(
    serve: Serve, session: aiohttp.ClientSession, status: int
):
    failure = await answered(serve, session, status, Retry_After="120")
    classes = (f"http:{status}", f"http:{status // 100}xx")
    assert failure == Failure(f"answered {status}: because", retry_after=timedelta(seconds=120), classes=classes)


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308])
async def test_redirects_are_not_followed(serve: Serve, session: aiohttp.ClientSession, status: int):
    visited: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        visited.append(request.path)
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    failure = await attempt(session, call(await serve(handler)))
    assert failure is not None
    assert failure.error == f"answered {status}"
    assert not failure.permanent
    assert visited == ["/hook"]


async def test_retry_after_may_be_a_date(serve: Serve, session: aiohttp.ClientSession):
    at = datetime.now(UTC) + timedelta(minutes=10)
    failure = await answered(serve, session, 503, Retry_After=format_datetime(at, usegmt=True))
    assert failure is not None
    assert timedelta(minutes=9) < failure.retry_after <= timedelta(minutes=10)
    failure = await answered(serve, session, 503, Retry_After="Thu, 01 Jan 2026 00:00:00 GMT")
    assert failure is not None
    assert failure.retry_after == timedelta(0)


@example("86401")
@given(st.text() | st.integers().map(str) | st.from_regex(r"\w{3}, \d+ \w{3} \d+ \d+:\d+:\d+ [-+]?\w+"))
def test_no_retry_after_breaks_a_worker(value: str):
    found = _retry_after({"Retry-After": value})
    assert found is None or timedelta(0) <= found <= LONGEST_RETRY_AFTER


def test_a_retry_after_of_thousands_of_digits_is_a_day():
    assert _retry_after({"Retry-After": "9" * 5_000}) == LONGEST_RETRY_AFTER


async def test_nobody_there_may_be_tried_again(session: aiohttp.ClientSession):
    with deaf_port() as port:
        url = f"http://127.0.0.1:{port}/"
        failure = await attempt(session, call(url))
    assert failure is not None
    assert url in failure.error
    assert not failure.permanent
    assert {"ConnectionError", "OSError"} <= set(failure.classes)


async def test_a_name_that_does_not_exist_may_be_tried_again(session: aiohttp.ClientSession):
    failure = await attempt(session, call("http://nobody.invalid/"))
    assert failure is not None
    assert not failure.permanent


async def test_an_answer_cut_short_may_be_tried_again(session: aiohttp.ClientSession):
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        failure = await attempt(session, call(f"http://{host}:{port}/"))
    assert failure is not None
    assert not failure.permanent


async def test_of_a_large_answer_only_the_beginning_is_read(serve: Serve, session: aiohttp.ClientSession):
    sent = 0

    async def handler(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        for _ in range(2_000):
            await response.write(b"x" * 65_536)
            sent += 65_536
        return response

    failure = await attempt(session, call(await serve(handler)))
    assert failure is not None
    assert len(failure.error) < 2_000
    assert sent < 2_000 * 65_536
    assert sent + 65_536 > LARGEST_RESPONSE


async def test_a_connection_is_used_again_after_an_answer_in_pieces(serve: Serve, session: aiohttp.ClientSession):
    peers: set[object] = set()

    async def handler(request: web.Request) -> web.StreamResponse:
        peers.add(request.transport)
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (b"one", b"two", b"three"):
            await response.write(piece)
            await asyncio.sleep(0)
        return response

    spec = call(await serve(handler))
    for _ in range(3):
        assert await attempt(session, spec) is None
    assert len(peers) == 1


async def test_no_cookie_goes_from_one_run_to_the_next(serve: Serve, session: aiohttp.ClientSession):
    seen: list[str | None] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Cookie"))
        response = web.Response()
        response.set_cookie("session", "of somebody else")
        return response

    spec = call(await serve(handler))
    await attempt(session, spec)
    await attempt(session, spec)
    assert seen == [None, None]


async def test_errors_are_asked_for_in_plain_text(serve: Serve, session: aiohttp.ClientSession):
    async def handler(request: web.Request) -> web.Response:
        response = web.Response(status=500, text="what went wrong " * 100)
        response.enable_compression()
        return response

    failure = await attempt(session, call(await serve(handler)))
    assert failure is not None
    assert "what went wrong" in failure.error
