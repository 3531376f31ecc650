"""What remote handlers tell of their work, on the wire."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from foliot.domain.report import LONGEST_MESSAGE
from foliot.wire.timing import Instant
from foliot.wire.work import Fence, RunRef

MOST_REPORTS: Final = 1_000
Number = Annotated[float, Meta(ge=-1e18, le=1e18)]


class ToldProgress(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """How far an attempt is: a fraction of its work, `done` out of `total`, a message."""

    at: Instant
    fraction: Annotated[float, Meta(ge=0, le=1)] | None = None
    done: Number | None = None
    total: Number | None = None
    message: Annotated[str, Meta(max_length=LONGEST_MESSAGE)] | None = None


class Told(msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """One attempt's progress, and its checkpoint: any JSON of up to 256 KiB."""

    run_id: str
    fence: Fence
    progress: ToldProgress | None = None
    checkpoint: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class Wanted(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """A run that the worker holds, and whose last checkpoint it wants to know."""

    run_id: str
    fence: Fence


class ReportBody(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What attempts tell that are under way, each named once. May be repeated after a lost reply."""

    worker: str
    told: Annotated[list[Told], Meta(max_length=MOST_REPORTS)] = []
    wanted: Wanted | None = None


class ReportAnswer(msgspec.Struct):
    """`lost`: held no more, and nothing of what was told was kept. `checkpoint`: what was wanted, if there is one."""

    lost: list[RunRef] = []
    checkpoint: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
