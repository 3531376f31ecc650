"""What queries and filters name."""

from foliot.domain.errors import InvalidField
from foliot.domain.ids import decode


def named_job(text: str, field: str = "job") -> int:
    """The job that a filter names; a text that is no job's id is InvalidField of that filter."""
    try:
        return decode("job", text)
    except InvalidField as error:
        raise InvalidField(field, error.message, error.hint) from None
