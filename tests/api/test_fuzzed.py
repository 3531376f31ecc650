"""What is published of a fuzzing says what was reached, and what was not."""

from api.fuzzed import page, together

SHARES = [
    {"sent": 12_000, "reached": {"getJob": 70}, "wanted": ["createJob", "getJob"], "findings": ["createJob: 500"]},
    {"sent": 8_500, "reached": {"getRun": 1_234}, "wanted": ["getRun"], "findings": []},
]


def test_the_page_counts_the_cases_of_all_shares_and_names_what_was_never_reached():
    told = page(together(SHARES, "make fuzz CASES=20000"))
    assert "20,500 calls" in told
    assert "**1 findings**" in told
    assert "Of 3 operations 2 " in told
    assert "| createJob | 0 |" in told
    assert "| getRun | 1,234 |" in told
    assert "- `createJob: 500`" in told
    assert "`make fuzz CASES=20000`" in told
