"""Where a client finds Foliot and its key."""

from pathlib import Path

import msgspec
import pytest

from foliot.kit.settings import Access, client_file, find_access

KEY = "fol_given"


def _left(folder: Path, url: str) -> None:
    path = client_file(folder / ".foliot")
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(Access(url, "fol_left")))


@pytest.mark.parametrize("url", ["http://127.0.0.1:7070", "http://[::1]:7070/", "http://localhost:7071"])
def test_a_key_alone_goes_to_what_runs_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str):
    monkeypatch.chdir(tmp_path)
    _left(tmp_path, url)
    assert find_access({"FOLIOT_KEY": KEY}) == Access(url.rstrip("/"), KEY)


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example",
        "http://127.0.0.1.evil.example",
        "http://127.0.0.1@evil.example",
        "http://10.0.0.1",
        "//[",
    ],
)
def test_a_folder_that_somebody_else_made_does_not_learn_a_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str
):
    monkeypatch.chdir(tmp_path)
    _left(tmp_path, url)
    assert find_access({"FOLIOT_KEY": KEY}) is None


def test_a_folder_that_is_named_is_meant(tmp_path: Path):
    _left(tmp_path, "https://foliot.example")
    home = str(tmp_path / ".foliot")
    assert find_access({"FOLIOT_KEY": KEY, "FOLIOT_HOME": home}) == Access("https://foliot.example", KEY)
    assert find_access({"FOLIOT_HOME": home}) == Access("https://foliot.example", "fol_left")


def test_an_address_alone_takes_the_key_that_was_left_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    _left(tmp_path, "http://127.0.0.1:7070")
    assert find_access({"FOLIOT_URL": "http://127.0.0.1:9"}) == Access("http://127.0.0.1:9", "fol_left")
