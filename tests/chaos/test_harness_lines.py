"""Chores whose runs wait for each other: functions and HTTP targets, by the seed alone, and none in another's line."""

from collections import defaultdict

from chaos.graphs import Weaver
from chaos.lines import BY_HAND, ENDLESS, Crowd, Lines
from chaos.records import LIMITS
from notebook import Notebook

TARGET = "http://127.0.0.1:1/do"
TENANTS = ("acme", "globex")
ROUNDS = 8


async def asked(seed: int) -> Notebook:
    told = Notebook()
    chores: list[Lines | Crowd | Weaver] = [Crowd(told, seed, TARGET)]
    for number, tenant in enumerate(TENANTS):
        chores += [Lines(told, seed, number, tenant, TARGET), Weaver(told, seed, number, tenant, TARGET)]
    for _ in range(ROUNDS):
        for chore in chores:
            await chore.step()
    return told


async def test_what_waits_for_others_comes_from_the_seed_alone():
    assert (await asked(7)).calls == (await asked(7)).calls != (await asked(8)).calls


async def test_runs_under_every_limit_are_functions_and_http_targets():
    runs = (await asked(7)).bodies("createRuns", "runs")
    limited, crowded = ([run for run in runs if ("concurrency" in run) is has_limit] for has_limit in (True, False))
    assert {run["concurrency"]["limit"] for run in limited if run["handler"] == TARGET} == set(LIMITS.values())
    assert {run["handler"] for run in limited} == {TARGET, *LIMITS}
    assert {run["handler"] for run in crowded} == {TARGET, "quick", "slow"}


async def test_no_account_of_a_handler_has_two_limits():
    """To a limit all web addresses are one handler."""
    limits: dict[tuple[str, str], set[int]] = defaultdict(set)
    for run in (await asked(7)).bodies("createRuns", "runs"):
        if "concurrency" in run:
            limits[run["handler"], run["payload"]["account"]].add(run["concurrency"]["limit"])
    assert {len(found) for found in limits.values()} == {1}


async def test_each_job_in_which_runs_wait_is_a_function_of_one_tenant_and_an_http_target_of_the_other():
    handlers: dict[str, set[str]] = defaultdict(set)
    for body in (await asked(7)).bodies("createJob", "jobs"):
        handlers[body["name"].partition(" of ")[0]].add(body["handler"])
    functions = {BY_HAND: "quick", **{name: str(body["handler"]) for name, body in ENDLESS.items()}}
    assert handlers == {name: {TARGET, function} for name, function in functions.items()}


async def test_every_place_of_a_graph_is_an_http_target_now_and_then():
    places: dict[str, set[str]] = defaultdict(set)
    for body in (await asked(7)).bodies("createJobs", "jobs"):
        places[body["key"].rpartition("-")[2]].add(body["handler"])
    assert len(places) == 6
    assert all(handlers == {TARGET, "quick"} for handlers in places.values())
