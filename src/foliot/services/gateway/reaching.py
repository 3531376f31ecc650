"""What a caller is told when the database is away, or others are in the way."""

from collections.abc import Iterator
from contextlib import contextmanager

from foliot.domain.errors import Conflict, Unavailable
from foliot.store.recovery import is_contended, is_gone


@contextmanager
def reaching() -> Iterator[None]:
    """A database that is away, or others in the way: something to try again, which every call of the gateway bears."""
    try:
        yield
    except Exception as error:
        if is_contended(error):
            raise Conflict("others hold what this is about", "try again in a moment, with less at once") from error
        if not is_gone(error):
            raise
        raise Unavailable("the database cannot be reached", "try again in a few seconds") from error
