"""What an operator allows: whom, which programs, with which first words."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foliot.domain.commands import CommandPolicy, Limits, Rights
from foliot.domain.spec import CommandHandler, ContainerHandler, FunctionHandler, HttpHandler, shown

NAMES = st.sampled_from(["report", "tidy", "..", "a*", "*", ""])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map(lambda names: "/" + "/".join(names))


def policy(**fields) -> CommandPolicy:
    return msgspec.convert(fields, CommandPolicy)


def rights(*allow) -> Rights:
    found = policy(tenants={"growth": {"allow": allow}}).of("growth")
    assert found is not None
    return found


def test_a_program_is_allowed_with_all_arguments_or_with_those_that_are_named():
    some = rights("/usr/bin/report", ["/usr/bin/python3", "/srv/tidy.py"])
    assert some.allows("/usr/bin/report", ["report", "--anything"])
    assert some.allows("/usr/bin/python3", ["python3", "/srv/tidy.py", "--all"])
    assert not some.allows("/usr/bin/python3", ["python3", "-c", "import os"])
    assert not some.allows("/usr/bin/python3", ["python3"])
    assert not some.allows("/usr/bin/reporter", ["/usr/bin/report"]), "the file counts, not what it is called"
    assert not some.allows("", ["report"])


def test_a_star_stands_for_names_in_one_folder():
    jobs = rights("/srv/jobs/*.sh")
    assert jobs.allows("/srv/jobs/tidy.sh", ["x"])
    for program in ("/srv/jobs/tidy", "/srv/jobs/deep/tidy.sh", "/srv/jobs/../jobs/tidy.sh", "srv/jobs/tidy.sh"):
        assert not jobs.allows(program, ["x"])


def test_images_are_allowed_by_their_names():
    some = policy(tenants={"growth": {"images": ["ghcr.io/acme/*", "alpine:3"]}}).of("growth")
    assert some is not None
    assert some.allows_image("ghcr.io/acme/deep/report:1")
    assert some.allows_image("alpine:3")
    for image in ("ghcr.io/evil/report", "alpine:4", "alpine", "x.ghcr.io/acme/report"):
        assert not some.allows_image(image)
    assert not some.allows("/bin/true", ["true"]), "an image is no program"


@given(PATHS, PATHS)
def test_nothing_is_allowed_but_what_is_written_there(entry: str, program: str):
    try:
        some = rights(entry)
    except msgspec.ValidationError:
        return
    if "*" not in entry:
        assert some.allows(program, [program]) == (program == entry)
    elif some.allows(program, [program]):
        assert program.rpartition("/")[0] == entry.rpartition("/")[0], "never in another folder"
        assert ".." not in program.split("/")


def test_a_tenant_has_what_its_own_table_says_and_else_what_the_policy_says():
    some = policy(
        account="jobs",
        network=True,
        environment={"TZ": "UTC", "A": "1"},
        limits={"processes": 5},
        tenants={
            "growth": {"allow": ["*"], "network": False, "environment": {"A": "2"}, "account": "growth"},
            "*": {"allow": ["/bin/true"]},
            "nobody": {},
        },
    )
    growth, others = some.of("growth"), some.of("sales")
    assert growth is not None
    assert others is not None
    assert (growth.account, growth.network, growth.limits) == ("growth", False, Limits(processes=5))
    assert growth.environment.items() >= {"TZ": "UTC", "A": "2", "LANG": "C.UTF-8"}.items()
    assert (others.account, others.network, others.environment["A"]) == ("jobs", True, "1")
    assert some.of("nobody") is None, "a table of its own, and nothing in it"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"tenants": {}},
        {"tenants": {"growth": {"allow": []}}},
        {"tenants": {"growth": {"allow": ["report"]}}},
        {"tenants": {"growth": {"allow": ["/srv/*/report"]}}},
        {"tenants": {"growth": {"allow": [[]]}}},
        {"tenants": {"growth": {"allow": ["*"]}}, "uid": 0},
        {"tenants": {"growth": {"allow": ["*"], "shell": True}}},
        {"tenants": {"growth": {"allow": ["*"]}}, "limits": {"processes": 0}},
        {"tenants": {"growth": {"allow": ["*"]}}, "environment": {"A=B": "x"}},
        {"tenants": {"growth": {"allow": ["*"]}}, "environment": {"A": "x\0"}},
        {"tenants": {"growth": {"allow": ["*"]}}, "writable": ["relative"]},
    ],
)
def test_a_policy_that_says_nothing_or_nonsense_is_refused(fields):
    with pytest.raises(msgspec.ValidationError):
        policy(**fields)


def test_people_see_the_command_line_wherever_its_words_are():
    assert shown(CommandHandler(("/bin/echo", "a b")), None) == "/bin/echo 'a b'"
    assert shown(CommandHandler(), b'{"argv":["/bin/echo","c"]}') == "/bin/echo c"
    assert len(shown(CommandHandler(("/bin/echo", "x" * 1_000)), None)) == 500
    assert shown(ContainerHandler("acme/report", ("--all",)), None) == "acme/report --all"
    assert shown(ContainerHandler(), b'{"image":"acme/report","args":["x"],"env":{}}') == "acme/report x"
    assert shown(HttpHandler(), b'{"url":"http://a/"}') == "http://a/"
    assert shown(FunctionHandler("noop"), None) == "noop"
