"""Edits as the API makes them."""

from collections.abc import Callable
from typing import Any

import msgspec

from foliot.domain.job import Draft
from foliot.services.insights.jobs import body_of
from foliot.store.reading import JobRow
from foliot.wire.jobs import JobBody, draft_of


def changed(**fields: Any) -> Callable[[JobRow], Draft]:
    """An edit that lays these fields, in the wire's spelling, over a job; none takes a field out."""

    def edit(row: JobRow) -> Draft:
        whole = {name: value for name, value in {**body_of(row), **fields}.items() if value is not None}
        return draft_of(msgspec.json.decode(msgspec.json.encode(whole), type=JobBody))

    return edit
