"""The whole document, fuzzed: no error of ours, no answer that the document does not know. `make fuzz` does more.

What is called is the application as its process runs it: with the role to which the server shows one tenant's rows.
"""

import os
import sys
from collections.abc import AsyncIterator

import pytest
import requests
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from api.calling import Answer, Caller
from api.fuzzed import keep
from api.fuzzing import BY_NAME, FOUND, Call, Fuzzer, calls
from world import World

CASES = int(os.environ.get("CASES", "250"))
SHARES = 8 if CASES > 2_000 else 1
"""Parts that go side by side, and in each of which everything must have been reached."""


@pytest.fixture
async def fuzzer(world: World, guarded: Caller) -> AsyncIterator[Fuzzer]:
    made = Fuzzer(world, guarded)
    yield made
    if SHARES == 1:  # chance alone does not come to all of them in so few cases
        await made.reach(sorted(made.wanted - set(made.reached)))
    sys.stderr.write(f"\n{made.sent:,} calls; done: {dict(sorted(made.reached.items()))}\n")
    if SHARES > 1 and made.sent:
        keep(made)
    assert made.wanted <= set(made.reached), "never got through to these"


@pytest.mark.timeout(180 if SHARES == 1 else 0)
@pytest.mark.parametrize("share", range(SHARES))
@settings(
    max_examples=-(-CASES // SHARES),
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
async def test_no_call_is_answered_otherwise_than_the_document_says(fuzzer: Fuzzer, share: int, data: st.DataObject):
    names = sorted(BY_NAME)[share::SHARES]
    fuzzer.wanted = set(names)
    assume(await fuzzer.send(data.draw(calls(names))))


@pytest.mark.parametrize(
    ("status", "content"),
    [
        (500, b'{"type":"x","title":"x","status":500,"detail":"x","hint":"x","errors":[]}'),
        (200, b'{"jobId":7}'),
        (200, b"{}"),
        (404, b'{"type":"x","title":"x","status":404}'),
        (422, b'{"type":"x","title":"x","status":422,"detail":"x","hint":"","errors":[]}'),
    ],
)
def test_an_answer_that_the_document_does_not_know_is_noticed(fuzzer: Fuzzer, status: int, content: bytes):
    """Or else the test above could not fail."""
    call = Call("getJob", FOUND["getJob"].Case(path_parameters={"job": "x"}), 0, False, {}, None)
    request = requests.Request("GET", "http://foliot/v1/jobs/x").prepare()
    kind = "application/json" if status == 200 else "application/problem+json"
    with pytest.raises((AssertionError, KeyError, BaseExceptionGroup)):
        fuzzer._check(call, request, Answer(status, {"content-type": kind, "etag": '"1"'}, content))
