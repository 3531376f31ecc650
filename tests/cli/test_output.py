"""Tables and records: readable at 80 columns and in a pipe, and ids are never cut."""

import pytest

from foliot.cli.jobs import _COLUMNS as JOBS
from foliot.cli.output import PIPED, Column, record, table
from foliot.cli.runs import _COLUMNS as RUNS

RUN = {
    "runId": "run_06w3dv28g1000",
    "jobId": "job_06w3dv28g1000",
    "handler": "https://reports.example/a/rather/long/path/that/goes/on/and/on?and=on&and=on" * 3,
    "status": "completed",
    "standing": "completed",
    "attempts": 1,
    "scheduledAt": "2026-11-15T20:16:25.123456Z",
    "finishedAt": "2026-11-15T20:16:26Z",
}
JOB = {
    "jobId": "job_06w3dv28g1000",
    "name": "a name that somebody was not able to make any shorter than this",
    "status": "cancelled",
    "scheduleType": "recurring",
    "nextRunAt": "2026-11-15T20:16:25Z",
    "lastStatus": "completed",
}


@pytest.fixture
def width(monkeypatch: pytest.MonkeyPatch):
    def set_(columns: int | None) -> None:
        monkeypatch.delenv("COLUMNS", raising=False)
        if columns:
            monkeypatch.setenv("COLUMNS", str(columns))

    return set_


@pytest.mark.parametrize(("columns", "row"), [(RUNS, RUN), (JOBS, JOB)])
@pytest.mark.parametrize("room", [80, 100, 120, 200])
def test_a_row_is_a_line_that_fits_and_ids_are_whole(capsys, width, columns, row, room):
    width(room)
    table([row, row], columns, empty="")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= room
    assert row.get("runId", row["jobId"]) in lines[1]
    assert "2026-11-15 20:16:25" in lines[1]
    assert row["status"] in lines[1]


def test_long_text_ends_in_an_ellipsis_and_columns_line_up(capsys, width):
    width(80)
    short = {**RUN, "handler": "noop"}
    table([RUN, short], RUNS, empty="")
    heading, first, second = capsys.readouterr().out.splitlines()
    assert "…" in first
    assert "https://reports.exa" in first
    assert heading.index("STATUS") == first.index("completed") == second.index("completed")


def test_wide_room_shows_the_columns_that_may_be_left_out(capsys, width):
    width(80)
    table([RUN], RUNS, empty="")
    assert "JOB" not in capsys.readouterr().out
    width(160)
    table([RUN], RUNS, empty="")
    assert "job_06w3dv28g1000" in capsys.readouterr().out


def test_in_a_pipe_lines_stay_whole(capsys, width):
    width(None)
    table([RUN, JOB | RUN], RUNS, empty="")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert max(map(len, lines)) <= PIPED
    assert all(RUN[name] in line for line in lines[1:] for name in ("runId", "jobId"))


def test_even_in_a_tiny_terminal_ids_are_whole(capsys, width):
    width(20)
    table([RUN], RUNS, empty="")
    assert "run_06w3dv28g1000" in capsys.readouterr().out


def test_wide_letters_are_counted_as_two(capsys, width):
    width(80)
    columns = (Column("name", "NAME"), Column("x", "X"))
    table([{"name": "振込", "x": "1"}, {"name": "abcd", "x": "2"}], columns, empty="")
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["NAME  X", "振込  1", "abcd  2"]


def test_nothing_is_said_in_a_sentence(capsys):
    table([], RUNS, empty="nothing yet")
    assert capsys.readouterr().out == "nothing yet\n"


def test_what_comes_from_elsewhere_does_not_steer_the_terminal(capsys, width):
    width(80)
    table([{**RUN, "handler": "evil\x1b[2J \tline\r\nmore"}], RUNS, empty="")
    record({"error": "one\x1b]0;title\x07\n  two", "empty": "", "nothing": None, "more": {"a": [1]}})
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\r" not in out
    assert "evil" in out
    assert "more     " not in out.splitlines()[1]
    assert out.endswith(
        "error    one\N{REPLACEMENT CHARACTER}]0;title\N{REPLACEMENT CHARACTER}\n"
        "           two\n"
        "empty\n"
        "nothing  -\n"
        'more     {"a":[1]}\n'
    )


def test_an_error_in_a_table_is_the_line_that_names_it(capsys, width):
    width(80)
    trace = 'Traceback (most recent call last):\n  File "x", line 1, in y\n    z\nValueError: broken\nbadly\n'
    table([{"error": trace}, {"error": "answered 500: oh\nno"}], (Column("error", "ERROR", shrinks=True),), empty="")
    assert capsys.readouterr().out.splitlines() == ["ERROR", "ValueError: broken", "answered 500: oh"]


def test_instants_of_a_record_name_their_zone(capsys):
    record({"at": "2026-11-15T20:16:25.5Z", "text": "at 2026-11-15T20:16:25Z"})
    assert capsys.readouterr().out == "at    2026-11-15 20:16:25 UTC\ntext  at 2026-11-15T20:16:25Z\n"
