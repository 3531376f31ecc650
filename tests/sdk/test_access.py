"""How clients find Foliot, and what they say when they do not."""

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from foliot import ApiError, AsyncFoliot, Foliot, NotConfigured, Unavailable, Unreachable
from foliot.domain.errors import InvalidField
from foliot.sdk.protocol import Answer, access_or_fail, unpack
from kit.launching import deaf_port

KEY = f"fol_{'a' * 12}_{'b' * 43}"
BOTH = pytest.mark.parametrize("client", [Foliot, AsyncFoliot])


@BOTH
def test_nothing_configured_says_what_to_do(client: Any):
    with pytest.raises(NotConfigured) as caught:
        client()
    assert "foliot up" in caught.value.hint
    assert "FOLIOT_URL and FOLIOT_KEY" in str(caught.value)


def test_the_environment_says_where_and_who(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FOLIOT_URL", "http://prod.example:7070/")
    monkeypatch.setenv("FOLIOT_KEY", KEY + "\n")
    found = access_or_fail(None, None)
    assert (found.url, found.key) == ("http://prod.example:7070", KEY)


def test_what_foliot_up_left_here_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / ".foliot").mkdir()
    (tmp_path / ".foliot" / "client.json").write_text(json.dumps({"url": "http://127.0.0.1:7070", "key": KEY}))
    found = access_or_fail(None, None)
    assert (found.url, found.key) == ("http://127.0.0.1:7070", KEY)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "client.json").write_text(json.dumps({"url": "http://127.0.0.1:7071", "key": KEY}))
    monkeypatch.setenv("FOLIOT_HOME", str(elsewhere))
    assert access_or_fail(None, None).url == "http://127.0.0.1:7071"


def test_what_is_given_counts_more_than_the_environment_one_by_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FOLIOT_URL", "http://env.example")
    monkeypatch.setenv("FOLIOT_KEY", KEY)
    assert access_or_fail("http://given.example", None).url == "http://given.example"
    assert access_or_fail("http://given.example", None).key == KEY
    assert access_or_fail(None, "other").key == "other"
    assert access_or_fail(None, "other").url == "http://env.example"


@pytest.mark.parametrize("url", ["localhost:7070", "ftp://example.com", "http://", "file:///etc/passwd", "7070"])
@BOTH
def test_an_address_that_is_none_is_told_before_anything_is_sent(client: Any, url: str):
    with pytest.raises(NotConfigured, match="FOLIOT_URL"):
        client(url, KEY)


@BOTH
def test_a_key_that_cannot_be_one_is_told_before_anything_is_sent(client: Any):
    with pytest.raises(NotConfigured, match="FOLIOT_KEY"):
        client("http://127.0.0.1:7070", "a key\nwith a break")


@pytest.fixture
def deaf_address() -> Iterator[str]:
    with deaf_port() as port:
        yield f"http://127.0.0.1:{port}"


async def test_nobody_there_is_said_with_a_hint(deaf_address: str):
    url = deaf_address
    with pytest.raises(Unreachable) as caught:
        Foliot(url, KEY, max_retries=1).get_job("x")
    assert (caught.value.status, caught.value.hint) == (0, "is `foliot up` running?")
    assert caught.value.message == f"{url} cannot be reached: Connection refused"
    async with AsyncFoliot(url, KEY, max_retries=1) as client:
        with pytest.raises(Unreachable) as caught:
            await client.get_job("x")
    assert (caught.value.status, caught.value.hint) == (0, "is `foliot up` running?")


async def test_somebody_silent_is_said_too():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(ApiError, match="cannot be reached"):
            Foliot(url, KEY, timeout=0.05).get_job("x")
        async with AsyncFoliot(url, KEY, timeout=0.05) as client:
            with pytest.raises(ApiError, match=r"cannot be reached: .*[a-z]"):
                await client.get_job("x")


def test_an_answer_of_something_else_is_told_as_such():
    with pytest.raises(ApiError, match="not JSON") as caught:
        unpack(Answer(200, b"<html>welcome to nginx</html>"))
    assert "FOLIOT_URL" in caught.value.hint
    with pytest.raises(Unavailable, match="answered 502: <html>"):
        unpack(Answer(502, b"<html>bad gateway</html>"))


def test_a_key_that_no_header_can_carry_is_refused(deaf_address: str):
    with pytest.raises(InvalidField, match="idempotency_key"):
        Foliot(deaf_address, KEY).submit("f", idempotency_key="a\r\nb")
