"""Kinds of errors: what an exception and an answer are called, and which rule speaks of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.errorclass import RetryRule, classes_of, classes_of_exit, classes_of_status, first_match
from foliot.domain.errors import InvalidField
from foliot.domain.retry import Backoff
from foliot.domain.spec import FunctionHandler, Spec, digest

NAMES = st.sampled_from(["A", "B", "C", "mod.A", "timeout", "http:503", "http:5xx", "http:404"])
RULES = st.builds(RetryRule, on=st.lists(NAMES, min_size=1, max_size=3).map(tuple), never=st.booleans())


class WrongError(ConnectionError):
    pass


def test_an_exception_goes_by_its_own_name_with_and_without_module_and_by_its_bases():
    own, *others = classes_of(WrongError)
    assert own == f"{__name__}.WrongError"
    assert others == ["WrongError", "ConnectionError", "OSError", "Exception", "BaseException"]
    assert classes_of(ValueError)[:2] == ("ValueError", "Exception")
    assert classes_of(WrongError, ConnectionError)[1:] == ("WrongError", "ConnectionError")
    assert classes_of_status(503) == ("http:503", "http:5xx")
    assert classes_of_exit(3) == ("exit:3",)


def test_names_of_any_length_are_kept_short():
    long = type("L" * 1000, (ValueError,), {})
    assert max(map(len, classes_of(long))) == 200


@given(st.lists(RULES, max_size=5), st.lists(NAMES, max_size=4))
def test_the_first_rule_that_names_one_of_the_classes_decides(rules: list[RetryRule], classes: list[str]):
    found = first_match(rules, classes)
    speaking = [rule for rule in rules if set(rule.on) & set(classes)]
    assert found is (speaking[0] if speaking else None)


@pytest.mark.parametrize(
    "name", ["ValueError", "requests.exceptions.Timeout", "Größe", "timeout", "http:404", "http:4xx", "exit:3"]
)
def test_what_a_rule_may_name(name: str):
    assert RetryRule((name,)).on == (name,)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"on": ()}, "on"),
        ({"on": ("A",) * 21}, "on"),
        ({"on": ("A", "")}, "on[1]"),
        ({"on": ("not a name",)}, "on[0]"),
        ({"on": ("a..b",)}, "on[0]"),
        ({"on": ("http:99",)}, "on[0]"),
        ({"on": ("http:6xx",)}, "on[0]"),
        ({"on": ("http:50x",)}, "on[0]"),
        ({"on": ("exit:0",)}, "on[0]"),
        ({"on": ("exit:256",)}, "on[0]"),
        ({"on": ("A" * 201,)}, "on[0]"),
        ({"on": ("A",), "never": True, "max_retries": 1}, "never"),
        ({"on": ("A",), "never": True, "backoff": Backoff()}, "never"),
        ({"on": ("A",), "max_retries": 1001}, "maxRetries"),
        ({"on": ("A",), "max_retries": -1}, "maxRetries"),
    ],
)
def test_a_rule_that_cannot_be_says_where_and_what_to_do(fields, field: str):
    with pytest.raises(InvalidField) as wrong:
        RetryRule(**fields)
    assert wrong.value.field == field
    assert wrong.value.hint


def test_a_spec_without_rules_has_the_name_that_it_had_before_there_were_any():
    spec = Spec(handler=FunctionHandler("noop"))
    assert b"retry" not in spec.body()
    assert digest(spec.body()).hex()[:16] == "db315ac3be3c8ab8"
    ruled = Spec(handler=FunctionHandler("noop"), retry=(RetryRule(("ValueError",), never=True),))
    assert Spec.parse(ruled.body()) == ruled
    assert (spec.rules, ruled.rules[0].never) == ((), True)
