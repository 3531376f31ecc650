"""`foliot job occurrences` and `foliot gaps`"""

from cli.conftest import Shell


async def test_the_fire_times_of_a_job_are_a_table_with_what_became_of_them(shell: Shell):
    job = await shell.json("job", "create", "tick", "noop", "--every", "PT1H", "--catch-up", "all", "--jitter", "PT5S")
    assert job["catchUp"] == {"mode": "all", "window": "PT1H"}
    assert job["jitter"] == "PT5S"
    assert "no such fire times" in await shell("job", "occurrences", job["jobId"])
    lines = (await shell("job", "occurrences", job["jobId"], "--until", "2099-01-01T00:00:00Z")).splitlines()
    assert lines[0].split()[:3] == ["FIRES", "(UTC)", "STATUS"]
    assert "expected" in lines[1]
    assert "--until goes further back" in lines[-1]


async def test_fire_times_are_json_on_request(shell: Shell):
    job = await shell.json("job", "create", "tick", "noop", "--every", "PT24H")
    query = ("--until", "2030-01-01T00:00:00Z", "--status", "expected", "--limit", "2")
    found = await shell.json("job", "occurrences", job["jobId"], *query)
    assert [each["at"] for each in found] == ["2030-01-01T00:00:00Z", "2029-12-31T00:00:00Z"]
    assert {each["status"] for each in found} == {"expected"}


async def test_a_one_time_job_has_one_fire_time(shell: Shell):
    job = await shell.json("job", "create", "once", "noop", "--at", "2030-01-01T00:00:00Z")
    found = await shell.json("job", "occurrences", job["jobId"], "--until", "2031-01-01T00:00:00Z")
    assert [(each["at"], each["status"]) for each in found] == [("2030-01-01T00:00:00Z", "expected")]


async def test_without_gaps_it_says_so(shell: Shell):
    assert "no gaps" in await shell("gaps")
    assert await shell.json("gaps") == []
