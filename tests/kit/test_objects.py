"""Objects: the first one stays, and a half-written one is never seen."""

import asyncio
from pathlib import Path

import pytest

from foliot.kit.objects import Bucket, Folder, Objects, ObjectsError, open_objects


@pytest.fixture(params=["folder", "bucket"])
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> Objects:
    if request.param == "folder":
        return open_objects(f"file://{tmp_path}/store")
    return Bucket(pytest.importorskip("obstore").store.MemoryStore())


async def test_the_first_one_of_a_name_stays(objects: Objects, tmp_path: Path):
    assert await objects.get("a/1.json") is None
    assert await objects.list("a/") == []
    won = await asyncio.gather(*(objects.put("a/1.json", str(each).encode()) for each in range(10)))
    assert sum(won) == 1
    assert await objects.get("a/1.json") == str(won.index(True)).encode()
    assert await objects.put("a/10.json", b"ten")
    assert await objects.put("b/1.json", b"")
    assert await objects.list("a/") == ["a/1.json", "a/10.json"]
    assert await objects.list("a/10") == ["a/10.json"]
    assert await asyncio.to_thread(lambda: list(tmp_path.rglob(".*"))) == [], "drafts are left behind"


@pytest.mark.parametrize("name", ["", "../x", "a/../../x", "/x", "a//b", ".hidden", "a/.b", "a\0", "a b", "a/"])
async def test_a_name_never_leads_out_of_the_folder(tmp_path: Path, name: str):
    with pytest.raises(ObjectsError):
        await Folder(tmp_path).put(name, b"")


@pytest.mark.parametrize("place", ["ftp://x/y", "file://host/x", "http://bucket"])
def test_a_place_that_cannot_be_is_told(place: str):
    with pytest.raises(ObjectsError, match="no place for objects"):
        open_objects(place)


async def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ObjectsError, match="cannot be written"):
        await Folder(tmp_path / "file").put("x", b"")
