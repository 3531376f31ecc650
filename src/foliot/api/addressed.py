"""What the path of a call is about; a malformed id is as unknown as any other."""

from foliot.api.operation import Call
from foliot.domain.errors import InvalidField, NotFound
from foliot.domain.ids import decode


def job_id(call: Call) -> int:
    return job_of(call.path["job"])


def job_of(text: str) -> int:
    return _known("job", text, "job")


def run_id(call: Call) -> int:
    return _known("run", call.path["run"], "run")


def operation_id(call: Call) -> int:
    return _known("op", call.path["operation"], "operation")


def worker_id(call: Call) -> int:
    return _known("wrk", call.path["worker"], "worker")


def _known(prefix: str, text: str, noun: str) -> int:
    try:
        return decode(prefix, text)
    except InvalidField:
        raise NotFound(f"there is no such {noun}") from None
