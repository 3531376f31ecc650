"""What can go wrong in a way the caller can mend."""

from collections.abc import Iterable


class FoliotError(Exception):
    """Root of everything Foliot raises on purpose; `hint` says what to do next. The edge translates each leaf once."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message


class InvalidField(FoliotError, ValueError):  # noqa: N818 - reads aloud: "raise InvalidField"
    """A value the caller sent cannot be taken; `field` is spelled as on the wire (camelCase)."""

    def __init__(self, field: str, message: str, hint: str = "") -> None:
        super().__init__(message, hint)
        self.args = (field, message, hint)  # so that it survives pickling
        self.field = field

    def within(self, place: str) -> "InvalidField":
        """The same fault, of a value that stands in `place`: `jobs[3]`."""
        return InvalidField(f"{place}.{self.field}", self.message, self.hint)

    def __str__(self) -> str:
        return f"{self.field}: {super().__str__()}"


class Cycle(FoliotError):  # noqa: N818 - as InvalidField
    """Jobs that would wait for each other for ever; the message names them, from one back to itself."""


class NotFound(FoliotError):  # noqa: N818 - as InvalidField
    """There is no such thing, or it belongs to another tenant: the answer is the same."""


class Conflict(FoliotError):  # noqa: N818 - as InvalidField
    """The request is well formed, but contradicts the present state."""


class Stale(FoliotError):  # noqa: N818 - as InvalidField
    """A change was meant for another version than the `present` one; that is none if there is nothing."""

    def __init__(self, message: str, hint: str, present: int | None) -> None:
        super().__init__(message, hint)
        self.args = (message, hint, present)  # so that it survives pickling
        self.present = present


class ForeignCursor(FoliotError):  # noqa: N818 - as InvalidField
    """A cursor that this list has not given out: changed on the way, another list's, or another tenant's."""

    def __init__(self) -> None:
        super().__init__(
            "the cursor is not one that this list has given out",
            "pass nextCursor of the page before unchanged, with the same filters; or leave it out and begin anew",
        )
        self.args = ()  # so that it survives pickling


class TooLarge(FoliotError):  # noqa: N818 - as InvalidField
    """More was sent than is read."""


class Unauthorised(FoliotError):  # noqa: N818 - as InvalidField
    """The caller has not shown who it is, or what it may do."""


class Forbidden(FoliotError):  # noqa: N818 - as InvalidField
    """The caller is known, but may not do this."""


class Unavailable(FoliotError):  # noqa: N818 - as InvalidField
    """Foliot cannot answer now; the same request may succeed later."""


class TooMany(FoliotError):  # noqa: N818 - as InvalidField
    """The caller asks for more than it may just now: nothing was done, and in `after` seconds it may be."""

    def __init__(self, message: str, hint: str = "", *, after: float = 1.0) -> None:
        super().__init__(message, hint)
        self.after = after


class Swamped(TooMany):
    """All callers together ask for more than can be taken in: it is not this one's fault."""


class QuotaExceeded(TooMany):
    """The caller may not have more of this: waiting alone does not help, giving some up does, or being allowed more."""


def one_of(words: Iterable[str]) -> str:
    """The hint that names what would be right: `one of dead, draining, live`."""
    return "one of " + ", ".join(sorted(map(str, words)))


class FenceLost(FoliotError):  # noqa: N818 - as InvalidField
    """An attempt came to its end when it was no longer the one that counts: what it wrote was taken back."""
