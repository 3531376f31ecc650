"""How many files and connections this process may hold open."""

import resource
from contextlib import suppress


def allow_many_files() -> None:
    """Raise our own limit as far as we may: many systems begin at 1,024, which is fewer than workers that wait."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems refuse the number that they themselves name as the most
        if soft != hard:
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
