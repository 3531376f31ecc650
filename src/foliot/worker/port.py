"""How a worker reaches its work, whatever carries it: SQL inside the trusted network, HTTP elsewhere."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from foliot.domain.seal import Voucher
from foliot.store.dispatch import Claimed, Settlement
from foliot.store.fleet import Load, Standing
from foliot.store.reports import Report
from foliot.store.specs import StoredSpec


class Carrier(Protocol):
    """One worker's way to its work. Every write after a claim carries the fence; what is no longer ours comes back."""

    voucher: Voucher | None
    """With what it vouches for its attempts, once it is registered."""

    async def register(
        self, queues: Sequence[str], groups: Sequence[str], labels: Sequence[str] = ()
    ) -> dict[int, str]:
        """Make the worker known, with what it carries; returns the lanes it subscribes to, each with its queue."""

    async def claim(
        self,
        number: int,
        lanes: Sequence[int],
        marks: Sequence[int],
        most: int,
        portions: Sequence[int],
        patience: timedelta = timedelta(),
    ) -> list[Claimed]:
        """Take up to `most` runs, lanes in this order, of each up to its portion; wait for them if there are none yet.

        Or fetch again what the claim of this number took before its reply was lost.
        """

    async def strays(self, known: Sequence[int]) -> list[Claimed]:
        """Runs that were claimed in our name by none of the `known` fences: replies that were lost, or came late."""

    async def specs(self, ids: Sequence[int]) -> dict[int, StoredSpec]: ...

    async def job_names(self, jobs: Sequence[int]) -> dict[int, str]: ...

    async def settle(self, batch: Sequence[Settlement]) -> list[Settlement]:
        """Record these endings; returns those whose lease was lost, and keeps what they say as late results.

        May be repeated after a lost reply.
        """

    async def note_started(self, begun: Sequence[tuple[Claimed, datetime]]) -> set[tuple[int, int]]:
        """Record that these have begun, or are about to; which are still ours, as (run, fence). May be repeated."""

    async def report(self, reports: Sequence[Report]) -> set[tuple[int, int]]:
        """Keep what handlers tell of their work; which attempts are still ours, as (run, fence). May be repeated."""

    async def last_checkpoint(self, run: Claimed) -> bytes | None:
        """What was saved last for this run, by us or by whoever had it before."""

    async def secrets(self, run: Claimed, names: Sequence[str]) -> dict[str, str]:
        """The values of those of these secrets that its tenant has, and to which a run that we hold refers."""

    async def forget(self, fences: Sequence[int]) -> None: ...

    async def publish(self, highest: dict[int, int]) -> None: ...

    async def promote(self) -> int:
        """Make ready what has been due for a while and nobody has made ready; how many. 0 if it is not ours to do."""

    async def beat(self, load: Load) -> Standing | None:
        """Renew the lease and learn what else has changed; none if the lease was lost for good."""

    async def listen(self, wake: Callable[[], None], news: Callable[[], None]) -> None:
        """Have `wake` called when there may be work, `news` when a heartbeat would learn something.

        Hints: polling makes it correct.
        """

    def hurry(self) -> None:
        """Have a claim that waits for work, now or later, come back at once: the worker is about to leave."""

    async def leave(self) -> None:
        """Say good-bye, so that nobody waits for the lease to end."""

    async def close(self) -> None: ...
