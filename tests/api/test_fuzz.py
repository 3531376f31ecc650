"""The whole document, fuzzed: no error of ours, no answer that the document does not know. `make fuzz` does more."""

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from api.calling import Caller
from api.fuzzing import BY_NAME, Fuzzer, calls
from world import World

CASES = int(os.environ.get("CASES", "250"))
SHARES = 8 if CASES > 2_000 else 1
"""Parts that go side by side, and in each of which everything must have been reached."""


@pytest.fixture
def fuzzer(world: World, api: Caller) -> Iterator[Fuzzer]:
    made = Fuzzer(world, api)
    yield made
    sys.stderr.write(f"\n{made.sent:,} calls; done: {dict(sorted(made.reached.items()))}\n")
    assert SHARES == 1 or made.left == set(), "never got through to these"


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
    call = data.draw(calls(names))
    await fuzzer.send(call)
    fuzzer.left = set(names) - set(fuzzer.reached)
