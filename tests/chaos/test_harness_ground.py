"""What a machine cannot do is left out, and named; a disk that is full has no room for anybody."""

import errno
import os
import shutil
from pathlib import Path

import pytest

from chaos import ground
from chaos.deeds import Deeds
from chaos.ground import Disk, Lacking
from chaos.nemesis import KINDS, Burst, Nemesis, Strike
from chaos.records import Fault
from chaos.topology import Topology

ROOT = os.geteuid() == 0


@pytest.fixture
def unprivileged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)


@pytest.mark.usefixtures("unprivileged")
async def test_what_needs_root_is_left_out_without_it_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    done: list[str] = []

    async def do(self: Deeds, kind: str, target: str) -> None:
        done.append(kind)
        self._log(Fault(kind=kind, target=target, began=1.0, ended=2.0))

    monkeypatch.setattr(Deeds, "do", do)
    topology = Topology(tmp_path)
    try:
        lacking = {kind: why for kind, why in topology.lacking.items() if why == "this needs root"}
        assert lacking.keys() == {"diskFull", "partition by network namespace"}
        strikes = [(0.0, Strike("kill", "worker-0")), (0.0, Strike("diskFull", "postgres"))]
        nemesis = Nemesis(topology, 1, 600, bursts=[Burst(0.0, strikes)])
        await nemesis.run(float("inf"))
        assert done == ["kill"]
        # What was not done is missed, unless it cannot be done: a partition can, by the wire.
        assert nemesis.unused() == [kind for kind in KINDS if kind != "kill" and kind not in topology.lacking]
        assert "partition" in nemesis.unused()
    finally:
        await topology.stop()


@pytest.mark.skipif(not ROOT, reason="to mount a disk takes root")
def test_a_full_disk_has_no_room_until_it_is_freed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ground, "SIZE", 64 << 20)
    place = tmp_path / "disk"
    try:
        disk = Disk(tmp_path / "disk.img", place)
    except Lacking as lacking:
        pytest.skip(str(lacking))
    try:
        before = shutil.disk_usage(place).free
        assert disk.fill() > before * 0.9
        with pytest.raises(OSError, match="No space left") as full, (place / "more").open("wb", buffering=0) as file:
            file.write(bytes(1 << 16))
        assert full.value.errno == errno.ENOSPC
        disk.free()
        assert (place / "more").write_bytes(bytes(1 << 20)) == 1 << 20
    finally:
        disk.close()
    assert not os.path.ismount(place)
    assert not (tmp_path / "disk.img").exists()
