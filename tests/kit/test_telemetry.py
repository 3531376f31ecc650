"""Log lines: what others had a say in stays within the line that tells of it."""

import io
import logging

import structlog

HOSTILE = "no\x1b]0;owned\x07\x9b2J\r\n20:15:01 api  all is well"


def test_what_a_handler_or_its_target_says_neither_steers_a_terminal_nor_passes_for_a_line(written: io.StringIO):
    structlog.get_logger("worker").warning(f"said {HOSTILE}", error=HOSTILE)
    logging.getLogger("elsewhere").warning("said %s", HOSTILE)
    shown = written.getvalue()
    assert not {"\x1b", "\x07", "\x9b", "\r"} & {*shown}
    assert shown.count(r"no\x1b]0;owned\x07\x9b2J\r\n20:15:01 api  all is well") == 2
    assert shown.endswith(r"no\x1b]0;owned\x07\x9b2J\r" + "\n    20:15:01 api  all is well\n")
    assert len(shown.splitlines()) == 3


def test_a_traceback_keeps_its_lines(written: io.StringIO):
    try:
        int(HOSTILE)
    except ValueError:
        structlog.get_logger("worker").exception("failed")
    first, *further = written.getvalue().splitlines()
    assert first.endswith("failed")
    assert further[0] == "    Traceback (most recent call last):"
    assert all(line.startswith("    ") for line in further)
