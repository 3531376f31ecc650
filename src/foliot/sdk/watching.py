"""How often to look at what goes on for a while."""

from collections.abc import Iterator

from foliot.kit.clock import Steady, steady


def looks(timeout: float, clock: Steady = steady) -> Iterator[float]:
    """Seconds to pause after each look, until `timeout` is over: short at first, for what takes a moment; then longer.

    The last look is at the very end.
    """
    end, pause = clock() + timeout, 0.02
    while (left := end - clock()) > 0:
        yield min(pause, left)
        pause = min(pause * 1.5, 1.0)
    yield 0.0


def too_long(thing: str, status: str, timeout: float) -> TimeoutError:
    hint = f" (`foliot run get {thing}` says what it waits for)" if thing.startswith("run_") else ""
    return TimeoutError(f"{thing} is still {status} after {timeout:g} s{hint}")
