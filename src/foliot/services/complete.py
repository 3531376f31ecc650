"""Ending an attempt that goes on outside, by the word of who was called for it."""

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from foliot.domain.discretion import hushed
from foliot.domain.errors import Conflict, Unauthorised
from foliot.domain.outcome import Answer, Ending, Failure, Returned, Snoozed
from foliot.domain.redaction import Redaction
from foliot.domain.seal import Attempt, Voucher, read_token
from foliot.domain.verdict import outcome_of
from foliot.kit.chance import Chance, fair
from foliot.kit.sealing import CannotOpen
from foliot.kit.signals import READY
from foliot.store import outside
from foliot.store.database import Database, Line
from foliot.store.outside import Ended
from foliot.store.sealed import ERROR, sealed_outcome
from foliot.store.secrets import run_of, secrets_meant
from foliot.store.vault import NO_VAULT, Vault
from foliot.wire.codec import rfc3339

MOST_REMEMBERED: Final = 10_000
_UNTOLD: Final = "what was said may quote secrets, and this process has no master key to tell (FOLIOT_MASTER_KEY_FILE)"


class Completer:
    """Takes the word of whoever holds the token of an attempt: the first counts, whoever comes later is told of it."""

    def __init__(
        self,
        database: Database,
        hint: Callable[[str], None],
        chance: Chance | None = None,
        vault: Vault = NO_VAULT,
    ) -> None:
        self._database = database
        self._vault = vault
        self._hint = hint
        self._chance = chance or fair()
        self._vouchers: dict[int, Voucher] = {}

    async def complete(self, run: int, token: str, answer: Answer) -> Ended:
        """End the attempt that the token was made for, and say where that leaves its run.

        Said again it changes nothing and is answered as before. Conflict if the attempt has ended otherwise: what was
        said is then kept beside it, for people.
        """
        attempt = await self._read(run, token)
        async with self._database.connection() as connection:
            line = Line.over(connection)
            answer = await self._discreet(line, attempt, token, answer)
            ours = await self._end(line, attempt, answer)
            ended = await outside.find_end(line, attempt)
            if ended is not None and (ours or ended.ending is _said(answer)[0]):
                return ended
            raise await self._too_late(line, attempt, answer, ended)

    async def _read(self, run: int, token: str) -> Attempt:
        attempt = read_token(run, token)
        if attempt is None or not (await self._voucher(attempt.worker)).has_made(token, attempt):
            hint = "send what came with the call as Foliot-Token, as `Authorization: Bearer fct_…`"
            raise Unauthorised("this is not the token of an attempt of this run", hint)
        return attempt

    async def _voucher(self, worker: int) -> Voucher:
        if worker not in self._vouchers:
            if len(self._vouchers) > MOST_REMEMBERED:
                self._vouchers.clear()
            self._vouchers[worker] = await outside.voucher_of(self._database, worker)
        return self._vouchers[worker]

    async def _discreet(self, line: Line, attempt: Attempt, token: str, answer: Answer) -> Answer:
        """The answer without the secrets that the attempt was given."""
        if answer is None or (run := await run_of(line, attempt)) is None:
            return answer
        run = await run.opened(self._vault, attempt.run)
        try:
            secrets = await secrets_meant(self._vault, run)
        except CannotOpen:  # an end must get on record: what cannot be looked through is left out of it
            return _without_words(answer)
        return hushed(answer, Redaction((token, *secrets.values(), *run.said)))

    async def _end(self, line: Line, attempt: Attempt, answer: Answer) -> bool:
        """Whether it was still to be ended."""
        # Again, if it went from its worker's hands to outside in between.
        while (going := await outside.find_attempt(line, attempt)) is not None:
            outcome = outcome_of(answer, going.spec, going.run.failures, self._chance())
            if lock := await self._vault.lock(going.run.tenant):
                outcome = sealed_outcome(lock, going.run.id, outcome)
            if await outside.end(line, going, outcome, self._called):
                return True
        return False

    def _called(self, lanes: Sequence[int]) -> None:
        if lanes:
            self._hint(READY)

    async def _too_late(self, line: Line, attempt: Attempt, answer: Answer, ended: Ended | None) -> Conflict:
        if ended is None:
            hint = "its worker was taken for dead before it had begun, or it is too long ago"
            return Conflict("this attempt is not under way, and nothing is known of it", hint)
        ending, error = _said(answer)
        if lock := await self._vault.lock(attempt.tenant):
            error = lock.text(attempt.run, ERROR, error)
        await outside.keep_late_word(line, attempt, ending, error)
        how = f"it ended as {ended.ending.word} at {rfc3339(ended.at)}"
        return Conflict(f"this attempt is over: {how}", "that stands; a new attempt comes with a token of its own")


def _without_words(answer: Answer) -> Answer:
    match answer:
        case Failure():
            return msgspec.structs.replace(answer, error=_UNTOLD)
        case Snoozed():
            return msgspec.structs.replace(answer, reason=_UNTOLD)
        case Returned():
            return None
        case _:
            return answer


def _said(answer: Answer) -> tuple[Ending, str | None]:
    match answer:
        case Failure(error=error):
            return Ending.FAILED, error
        case Snoozed(reason=reason):
            return Ending.SNOOZED, reason or None
        case _:
            return Ending.COMPLETED, None
