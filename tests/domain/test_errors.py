"""Errors keep what they were told, also across a process boundary."""

import pickle

import pytest

from foliot.domain.errors import Conflict, FoliotError, Forbidden, InvalidField, NotFound, Unavailable


@pytest.mark.parametrize("leaf", [NotFound, Conflict, Forbidden, Unavailable])
def test_every_leaf_has_one_root_and_carries_its_hint(leaf):
    error = pickle.loads(pickle.dumps(leaf("it moved on", "look again")))
    assert isinstance(error, FoliotError)
    assert (error.message, error.hint, str(error)) == ("it moved on", "look again", "it moved on (look again)")


def test_an_invalid_field_names_its_field_and_survives_pickling():
    error = pickle.loads(pickle.dumps(InvalidField("maxRetries", "is negative", "use 0 or more")))
    assert isinstance(error, ValueError)
    assert (error.field, error.message, error.hint) == ("maxRetries", "is negative", "use 0 or more")
    assert str(error) == "maxRetries: is negative (use 0 or more)"


def test_without_a_hint_the_message_stands_alone():
    assert str(InvalidField("name", "is empty")) == "name: is empty"
    assert str(NotFound("no such job")) == "no such job"
