"""What goes wrong for a program that calls Foliot: a class for each kind of refusal, with what to do next."""

from typing import TYPE_CHECKING, Any, Final

from foliot.domain.errors import FoliotError
from foliot.wire.problems import FieldError, Problem

if TYPE_CHECKING:
    from foliot.sdk.records import RunRecord


class NotConfigured(FoliotError):  # noqa: N818 - reads aloud
    """The client does not know where Foliot is."""


class ApiError(FoliotError):
    """Foliot refused a call, or could not be reached (status 0)."""

    def __init__(
        self,
        status: int,
        message: str,
        hint: str = "",
        errors: list[FieldError] | None = None,
        *,
        kind: str = "",
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message, hint)
        self.args = (status, message, hint, errors)  # so that it survives pickling
        self.status = status
        self.errors = errors or []
        """What is wrong with which field; the first is the message."""
        self.kind = kind
        """The last part of the problem's `type`: `not-found`, `invalid`, …"""
        self.retry_after = retry_after
        """Seconds after which the same call may succeed, if Foliot said so."""


class Unreachable(ApiError):  # noqa: N818 - as NotConfigured
    """No answer came: whether the call had any effect is not known, unless it `was_sent` to nobody."""

    def __init__(self, message: str, hint: str = "", *, was_sent: bool = True) -> None:
        super().__init__(0, message, hint)
        self.args = (message, hint)
        self.was_sent = was_sent


class InvalidRequest(ApiError):  # noqa: N818 - as NotConfigured
    """A field cannot be taken as it is; `errors` names it (400, 413, 422)."""


class Unauthorised(ApiError):  # noqa: N818 - as NotConfigured
    """The key is missing, wrong, expired or revoked (401)."""


class Forbidden(ApiError):  # noqa: N818 - as NotConfigured
    """The key is good, and may not do this (403)."""


class NotFound(ApiError):  # noqa: N818 - as NotConfigured
    """There is no such thing, or it is another tenant's (404)."""


class Conflict(ApiError):  # noqa: N818 - as NotConfigured
    """The call contradicts how things stand, or what somebody else has changed meanwhile (409, 412)."""


class TooManyRequests(ApiError):  # noqa: N818 - as NotConfigured
    """A limit of the key or the tenant is used up, or too much waits; `retry_after` says for how long (429)."""


class QuotaExceeded(TooManyRequests):
    """The tenant may not have more of this; waiting alone does not help, so it is not tried again (429)."""


class Unavailable(ApiError):  # noqa: N818 - as NotConfigured
    """Foliot cannot answer now, or broke; the same call may succeed later (5xx)."""


class RunFailed(FoliotError):  # noqa: N818 - as NotConfigured
    """A run that was waited for came to an end other than success; `run` is how it stands."""

    def __init__(self, run: "RunRecord") -> None:
        self.run = run
        self.status = str(run.status)
        self.error_class: str | None = run.values.get("errorClass")
        self.error_message: str | None = run.values.get("errorMessage")
        super().__init__(_said(run), _hint(run.id, self.status))
        self.args = (run,)


_BY_STATUS: Final[dict[int, type[ApiError]]] = {
    400: InvalidRequest,
    401: Unauthorised,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Conflict,
    413: InvalidRequest,
    422: InvalidRequest,
    428: InvalidRequest,
    429: TooManyRequests,
}
_QUOTA: Final = "quota-exceeded"


def error_of(status: int, problem: Problem, retry_after: float | None) -> ApiError:
    """What to raise for what the API said."""
    kind = problem.type.rpartition(":")[2]
    made = QuotaExceeded if kind == _QUOTA else _class_of(status)
    return made(status, problem.detail, problem.hint, problem.errors, kind=kind, retry_after=retry_after)


def strange(status: int, body: bytes, retry_after: float | None = None) -> ApiError:
    """What to raise for an answer that no Foliot gives: something stands between."""
    said = body[:200].decode(errors="replace")
    if 200 <= status < 300:
        return ApiError(status, f"answered what is not JSON: {said}", "is FOLIOT_URL the address of Foliot?")
    return _class_of(status)(status, f"answered {status}: {said}", retry_after=retry_after)


def unreachable(url: str, error: Any, *, was_sent: bool) -> Unreachable:
    error = getattr(error, "reason", None) or getattr(error, "os_error", None) or error  # what the libraries wrap
    timed_out = "no answer in time" if isinstance(error, TimeoutError) else ""
    reason = timed_out or getattr(error, "strerror", None) or str(error) or type(error).__name__
    return Unreachable(f"{url} cannot be reached: {reason}", "is `foliot up` running?", was_sent=was_sent)


def _class_of(status: int) -> type[ApiError]:
    return _BY_STATUS.get(status, Unavailable if status >= 500 else ApiError)


def _said(run: "RunRecord") -> str:
    """`run_… failed after 4 attempts: ValueError: no such order`; of a traceback, the line that says most."""
    attempts = run.values.get("attempts") or 0
    tries = f" after {attempts} attempts" if attempts > 1 else ""
    last = (run.values.get("errorMessage") or "").strip().rpartition("\n")[2]
    return f"{run.id} {run.status}{tries}{': ' if last else ''}{last}"


def _hint(run: str, status: str) -> str:
    if status != "failed":
        return f"`foliot run get {run}` says what became of it"
    return f"`foliot run get {run}` shows its attempts; `foliot run retry {run}` lets it go on"
