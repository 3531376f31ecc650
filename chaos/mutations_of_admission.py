"""Mutants of what limits and queues promise: how many at once, in which order, and nobody left behind."""

from typing import Final

from chaos.mutant import Edit, Mutant, burst

_ADMISSION: Final = "store/migrations/0015_admission.sql"
_LINES: Final = "store/migrations/0023_lines.sql"
"""Where `hand_over` was last written."""
_SEATS: Final = "store/migrations/0032_seats_looked_up.sql"
"""Where `take_seats`, `lock_ties` and `vacate` were."""
_KILLS: Final = [burst((0.0, "kill", "worker-0"), (6.0, "kill", "worker-1"))]
_SECONDS: Final = 25.0

_LIMIT_IGNORED = Mutant(
    "limit-ignored",
    "whoever hands over does not ask how many go already",
    (
        Edit(
            _LINES,
            "least(5000, its.capacity - (SELECT count(*) FROM seat h",
            "least(5000, its.capacity - 0 * (SELECT count(*) FROM seat h",
        ),
    ),
    _KILLS,
    _SECONDS,
)
_LINES_UNLOCKED = Mutant(
    "lines-unlocked",
    "nobody locks a line before it looks who stands there, and who comes takes its time: it misses who leaves",
    (
        Edit(
            _SEATS,
            "(SELECT slot FROM seat WHERE run = ANY (ids))) ORDER BY id FOR UPDATE);\n",
            "(SELECT slot FROM seat WHERE run = ANY (ids))) ORDER BY id);\n",
        ),
        Edit(
            _ADMISSION,
            "    locked := ARRAY(SELECT id FROM slot WHERE id = ANY (wanted) ORDER BY id FOR UPDATE SKIP LOCKED);\n",
            "    locked := ARRAY(SELECT id FROM slot WHERE id = ANY (wanted) ORDER BY id);\n",
        ),
        # Without the pause it was let go in six rounds: both must be there at the same moment.
        Edit(
            _ADMISSION,
            "    RETURN winners || hand_over(locked);\nEND $$;\n",
            "    winners := winners || hand_over(locked);\n    PERFORM pg_sleep(0.02);\n    RETURN winners;\nEND $$;\n",
        ),
    ),
    _KILLS,
    _SECONDS,
)
_NOBODY_CALLED = Mutant(
    "nobody-called",
    "whoever leaves a line does not call the next",
    (Edit(_SEATS, "    RETURN hand_over(slots);\nEND $$;\n", "    RETURN '{}';\nEND $$;\n"),),
    _KILLS,
    _SECONDS,
)
_ORDER_IGNORED = Mutant(
    "order-ignored",
    "the last in line comes first",
    (
        Edit(
            _LINES,
            "WHERE NOT line.marked AND s.slot = line.id AND s.state = 1\n"
            "                         ORDER BY s.priority, s.at, s.run LIMIT",
            "WHERE NOT line.marked AND s.slot = line.id AND s.state = 1\n"
            "                         ORDER BY s.run DESC LIMIT",
        ),
    ),
    _KILLS,
    _SECONDS,
)
_PLACE_GIVEN_UP = Mutant(
    "place-given-up",
    "a run that waits for its retry leaves its place also where there is only one",
    (
        Edit(
            _SEATS,
            "(staying.paused OR (SELECT slot.capacity FROM slot WHERE slot.id = mine.slot) = 1)",
            "staying.paused",
        ),
    ),
    _KILLS,
    _SECONDS,
)
_QUEUE_OF_TWO = Mutant(
    "queue-of-two",
    "instants of a job that queues go two at a time",
    (
        Edit(
            _SEATS,
            "CASE WHEN job.overlap > 0 AND run.origin = 0 THEN 1 END",
            "CASE WHEN job.overlap > 0 THEN 2 END",
        ),
    ),
    _KILLS,
    _SECONDS,
)
OF_ADMISSION: Final = (
    _LIMIT_IGNORED,
    _LINES_UNLOCKED,
    _NOBODY_CALLED,
    _ORDER_IGNORED,
    _PLACE_GIVEN_UP,
    _QUEUE_OF_TWO,
)
