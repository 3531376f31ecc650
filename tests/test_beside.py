"""Tests that wait have a process to themselves, and no test is lost on the way."""

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
        self.shutting_down = False

    def send_runtest_some(self, indices: list[int]) -> None:
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True


@pytest.mark.parametrize("start", WAITING)
def test_what_is_said_to_wait_is_there(start: str):
    assert list(ROOT.glob(f"{start}*"))


@pytest.mark.parametrize("waiting", [[f"{start}x" for start in WAITING], []])
def test_the_last_process_gets_what_waits_and_the_others_all_the_rest(waiting: list[str]):
    collected = [*OTHERS[:10], *waiting, *OTHERS[10:]]
    scheduling = Beside(SimpleNamespace(getvalue=lambda _: ["3*popen"]))
    processes = [Process(name) for name in ("gw1", "gw2", "gw0")]
    for process in processes:
        scheduling.add_node(process)
        scheduling.add_node_collection(process, collected)
    scheduling.schedule()
    given = {process.gateway.id: [collected[index] for index in process.given] for process in processes}
    assert given["gw2"] == waiting
    assert sorted(given["gw0"] + given["gw1"]) == sorted(OTHERS)
    assert [process.gateway.id for process in processes if process.shutting_down] == ["gw2"]
