"""Builds of Foliot that break a rule of time: calendars, edits, windows, back-fills, and who advances a schedule."""

from typing import Final

from chaos.mutant import EVERYBODY, NOBODY_FIRES, NOT_UNIQUE, SCHEDULERS, Edit, Mutant

_CALENDAR_IGNORED = Mutant(
    "calendar-ignored",
    "jobs fire whether or not their calendar allows it",
    (
        Edit(
            "domain/schedule.py",
            "        return next_allowed(following, recurrence.calendar, recurrence.rule, after)\n",
            "        return following(after)\n",
        ),
    ),
    SCHEDULERS,
    40.0,
)
_WINDOW_IGNORED = Mutant(
    "window-ignored",
    "late instants are made up for however old they are",
    (
        Edit("store/migrations/0002_time.sql", "extract(epoch FROM opened_at - at) <= within", "within > 0"),
        Edit("services/fire/advance.py", "timedelta(seconds=each.latest_within),", "timedelta(days=1),"),
        # What no job of a schedule wants any more is not even opened.
        Edit(
            "services/fire/advance.py",
            "timedelta(seconds=max(each.all_within, each.latest_within if len(found) == MOST_ENDINGS else 0)),",
            "timedelta(days=1),",
        ),
    ),
    NOBODY_FIRES,
    75.0,
)
_EDIT_REACHES_BACK = Mutant(
    "edit-reaches-back",
    "a definition owns all that its schedule has yet to fire, also what fell due before the edit; an instant may have"
    " any number of runs, else schedulers fall over the one that the old definition had",
    (
        *NOT_UNIQUE,
        Edit(
            "store/sql/jobs.sql",
            "SELECT job.schedule, job.id, greatest(x.after, schedule.cursor),\n",
            "SELECT job.schedule, job.id, schedule.cursor,\n",
        ),
    ),
    NOBODY_FIRES,
    75.0,
)
_TRIED_REPLACED = Mutant(
    "tried-replaced",
    "an edit puts another run in the place of one that has been tried and waits, for the same instant",
    (
        Edit(
            "store/sql/jobs.sql",
            " AND state IN (0, 2) AND fence = 0 RETURNING id\n",
            " AND state IN (0, 2) RETURNING id\n",
        ),
    ),
    SCHEDULERS,
    75.0,
)
_BACKFILL_DOUBLES = Mutant(
    "backfill-doubles",
    "a back-fill runs what has run already, whatever it was told to reprocess",
    (
        Edit(
            "domain/backfill.py",
            "        elif reprocess.wants(ended.get(at)):\n",
            "        elif at not in under_way:\n",
        ),
    ),
    SCHEDULERS,
    40.0,
)
_BACKFILL_UNPACED = Mutant(
    "backfill-unpaced",
    "a back-fill makes up to a thousand runs at once, whatever it was allowed",
    (
        Edit(
            "store/sql/operations.sql",
            "VALUES ($1, $2, 1, $3, $4, $5::jsonb, $6, $7, $8, $9, $10, $11)\n",
            "VALUES ($1, $2, 1, $3, $4, $5::jsonb, $6, $7, $8, greatest($9, 1000), $10, $11)\n",
        ),
    ),
    SCHEDULERS,
    40.0,
)
_BACKFILL_DISORDERED = Mutant(
    "backfill-disordered",
    "a back-fill begins with the newest instants, whatever it was asked for",
    (
        Edit(
            "store/sql/operations.sql",
            "ORDER BY i.at LIMIT least(x.room, o.concurrency - o.live))\n",
            "ORDER BY i.at DESC LIMIT least(x.room, o.concurrency - o.live))\n",
        ),
    ),
    SCHEDULERS,
    40.0,
)
_BACKFILL_FORGETS = Mutant(
    "backfill-forgets",
    "a back-fill passes over every third instant, and says that it was there already",
    (
        Edit(
            "store/sql/operations.sql",
            "     WHERE (SELECT r.id FROM run r WHERE r.job = p.job AND r.occurrence = p.at LIMIT 1) IS NULL\n",
            "     WHERE (SELECT r.id FROM run r WHERE r.job = p.job AND r.occurrence = p.at LIMIT 1) IS NULL\n"
            "       AND floor(extract(epoch FROM p.at))::bigint % 3 <> 0\n",
        ),
    ),
    SCHEDULERS,
    40.0,
)
_SCHEDULE_UNCOMPARED = Mutant(
    "schedule-uncompared",
    "a schedule is moved on without asking whether somebody else did so since it was read, and what is open already is"
    " not opened again; an instant may have any number of runs, all schedulers look after all schedules, and take their"
    " time between look and deed",
    (
        EVERYBODY,
        *NOT_UNIQUE,
        Edit(
            "store/sql/fire.sql",
            "        ON s.id = x.schedule AND s.next_at = x.expected\n",
            "        ON s.id = x.schedule\n",
        ),
        # The key of `firing` is a second safeguard: who falls over it fires nothing, and proves nothing.
        Edit(
            "store/sql/fire.sql",
            "CROSS JOIN (SELECT coalesce($11::timestamptz, clock_timestamp()) AS now) AS now\n",
            "CROSS JOIN (SELECT coalesce($11::timestamptz, clock_timestamp()) AS now) AS now\n"
            "    ON CONFLICT DO NOTHING\n",
        ),
        # Else a scheduler would have to stand still within the very millisecond between its look and its deed.
        Edit(
            "services/fire/advance.py",
            "            await self._learn(found)\n",
            "            await self._learn(found)\n"
            "            import random\n\n"
            "            await asyncio.sleep(random.random() * 0.3)\n",
        ),
    ),
    SCHEDULERS,
    40.0,
)
_FOLD_IGNORED = Mutant(
    "fold-ignored",
    "a time of day that the clocks show twice fires twice, whatever the schedule says",
    (
        Edit(
            "domain/daylight.py",
            'follow = _follow_wall_clock if dst is not None and dst.fold == "once" else _follow_elapsed_time',
            "follow = _follow_elapsed_time",
        ),
    ),
    SCHEDULERS,
    40.0,
)
_GAP_IGNORED = Mutant(
    "gap-ignored",
    "a time of day that the clocks skip does not fire, whatever the schedule says",
    (Edit("domain/daylight.py", 'gap_end = dst is not None and dst.gap == "end"', "gap_end = False"),),
    SCHEDULERS,
    40.0,
)
ONLY_SIMULATED: Final = (_FOLD_IGNORED, _GAP_IGNORED)
"""For a real campaign the clocks of some zone would have to change while it lasts."""
OF_TIME: Final = (
    _CALENDAR_IGNORED,
    _WINDOW_IGNORED,
    _EDIT_REACHES_BACK,
    _TRIED_REPLACED,
    _BACKFILL_DOUBLES,
    _BACKFILL_UNPACED,
    _BACKFILL_DISORDERED,
    _BACKFILL_FORGETS,
    _SCHEDULE_UNCOMPARED,
)
