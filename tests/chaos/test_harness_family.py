"""A process stands still with all that it has started, and they go on together."""

import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from chaos.deeds import Deeds
from chaos.family import family, freeze, thaw
from chaos.records import Fault
from chaos.topology import Topology

GRANDMOTHER = """
import subprocess, sys
child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(flush=True); input()'])"
subprocess.run([sys.executable, "-c", child], start_new_session=True)
"""


@pytest.fixture
def grandmother() -> Iterator[int]:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", GRANDMOTHER], stdin=pipe, stdout=pipe) as process:
        assert process.stdout is not None
        process.stdout.readline()  # the grandchild is there
        yield process.pid  # leaving closes the input for which it waits, and waits for all of them


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_children_of_children_stand_still_too_and_go_on(grandmother: int):
    frozen = freeze(grandmother)
    assert frozen == family(grandmother)
    assert [state(pid) for pid in frozen] == ["T", "T", "T"]
    thaw(frozen)
    assert "T" not in {state(pid) for pid in frozen}


def test_who_is_gone_or_goes_on_already_is_left_alone(grandmother: int):
    thaw([grandmother, 2**22 + 1])
    assert state(grandmother) != "T"
    assert os.getpid() not in family(grandmother)


@pytest.mark.parametrize("pid", [0, 1])
def test_the_whole_machine_is_no_family(pid: int):
    with pytest.raises(ValueError, match="nobody's"):
        freeze(pid)


async def test_who_is_not_there_cannot_be_stopped_which_excuses_nothing():
    noted: list[Fault] = []
    nodes = {"scheduler-0": SimpleNamespace(kind="scheduler", pid=0)}
    deeds = Deeds(cast("Topology", SimpleNamespace(nodes=nodes)), noted.append)
    await deeds.do("stop", "scheduler-0", random.Random(1))
    assert not noted
