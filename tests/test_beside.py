"""Tests that wait begin in a process of their own, everybody helps in the end, and no test is lost on the way."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from beside import WAITING, Beside

ROOT = Path(__file__).parent.parent
OTHERS = [f"tests/domain/test_ids.py::test_{number}" for number in range(20)]


class Process:
    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.given: list[int] = []
        self.asked: list[int] = []
        """What it is to give away."""
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def send_steal(self, indices: list[int]) -> None:
        self.asked = indices

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.mark.parametrize("start", WAITING)
def test_what_is_said_to_wait_is_there(start: str):
    assert list(ROOT.glob(f"{start}*"))


@pytest.fixture
def processes() -> list[Process]:
    return [Process(name) for name in ("gw1", "gw2", "gw0")]


def share_out(processes: list[Process], collected: list[str]) -> tuple[Beside, dict[str, list[str]]]:
    """The scheduling, and what each process got."""
    scheduling = Beside(SimpleNamespace(getvalue=lambda _: ["3*popen"]))
    for process in processes:
        scheduling.add_node(process)
        scheduling.add_node_collection(process, collected)
    scheduling.schedule()
    return scheduling, {each.gateway.id: [collected[index] for index in each.given] for each in processes}


def test_the_last_process_gets_what_waits_and_the_others_all_the_rest(processes: list[Process]):
    waiting = [f"{start}x" for start in WAITING]
    _, given = share_out(processes, [*OTHERS[:10], *waiting, *OTHERS[10:]])
    assert given["gw2"] == waiting
    assert sorted(given["gw0"] + given["gw1"]) == sorted(OTHERS)


def test_where_nobody_waits_all_are_shared_out(processes: list[Process]):
    _, given = share_out(processes, OTHERS)
    assert sorted(each for some in given.values() for each in some) == sorted(OTHERS)
    assert all(given.values())


def test_who_is_done_with_what_waits_takes_over_from_the_others(processes: list[Process]):
    waiting = [f"{start}x" for start in WAITING]
    scheduling, _ = share_out(processes, [*waiting, *OTHERS])
    last = next(each for each in processes if each.gateway.id == "gw2")
    for index in last.given:
        scheduling.mark_test_complete(last, index)
    assert not last.shutting_down
    asked = next(each for each in processes if each.asked)
    scheduling.remove_pending_tests_from_node(asked, asked.asked)
    assert last.given[-len(asked.asked) :] == asked.asked
