"""Specs are known by their content: what a release adds must not give another name to what was there before."""

from datetime import timedelta

import pytest

from foliot.domain.errors import InvalidField
from foliot.domain.spec import FunctionHandler, HttpHandler, Spec, digest

CALL = HttpHandler(url="https://example.com", headers={"b": "1", "a": "2"})
FIRST_RELEASE = {
    "db315ac3be3c8ab81785b6115fb55821a3eb0d58249027b040436c5e03809067": Spec(handler=FunctionHandler("noop")),
    "6760a0cd16ab237623274e8446e6871c13b5c16a5fcefbd920a9d42a4f873114": Spec(
        handler=CALL, timeout=timedelta(seconds=1.5), max_retries=0
    ),
}
ONCE = Spec(handler=CALL, delivery="atMostOnce", on_disconnect="stop", max_retries=0)


@pytest.mark.parametrize("name", FIRST_RELEASE)
def test_a_spec_of_the_first_release_keeps_its_name(name: str):
    spec = FIRST_RELEASE[name]
    assert digest(spec.body()).hex() == name
    assert Spec.parse(spec.body()) == spec
    assert not spec.is_at_most_once
    assert not spec.stops_when_cut_off


def test_what_was_added_is_part_of_the_name_and_comes_back():
    names = {digest(spec.body()) for spec in (*FIRST_RELEASE.values(), ONCE)}
    assert len(names) == 3
    again = Spec.parse(ONCE.body())
    assert again == ONCE
    assert again.is_at_most_once
    assert again.stops_when_cut_off
    assert Spec.parse(b'{"handler":{"type":"function","name":"noop"},"end_is_said":true}').end_is_said is True


def test_what_is_delivered_at_most_once_cannot_ask_for_retries():
    with pytest.raises(InvalidField) as refused:
        Spec(handler=CALL, delivery="atMostOnce", max_retries=1)
    assert refused.value.field == "maxRetries"
