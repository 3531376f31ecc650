import shutil
from pathlib import Path

import pytest

from foliot.kit.postgres import PostgresServer, tuning

GB = 1 << 30


def chosen(settings=None):
    words = tuning.arguments(Path("/"), Path("/tmp/socket"), settings or {})
    assert words[::2] == ["-c"] * (len(words) // 2)
    return dict(word.split("=", 1) for word in words[1::2])


@pytest.mark.parametrize("name", ["fsync", "synchronous_commit", "full_page_writes", "FSYNC", "Full-Page-Writes"])
@pytest.mark.parametrize("value", ["off", "false", "0", "no", "of", " OFF ", "local"])
def test_durability_cannot_be_switched_off(name, value):
    with pytest.raises(ValueError, match="must stay on"):
        PostgresServer(Path("/nowhere"), settings={name: value})


@pytest.mark.parametrize("name", ["port", "listen_addresses", "Unix-Socket-Directories", "data_directory"])
def test_what_the_launcher_decides_cannot_be_set(name):
    with pytest.raises(ValueError, match="belongs to the launcher"):
        PostgresServer(Path("/nowhere"), settings={name: "1"})


@pytest.mark.parametrize("name", ["", "fsync=off", "a b", "-c", "fsync\n"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="no name"):
        PostgresServer(Path("/nowhere"), settings={name: "on"})


def test_saying_on_is_allowed():
    PostgresServer(Path("/nowhere"), settings={"fsync": "ON"})


@pytest.mark.parametrize(
    ("memory", "expected"), [(GB // 4, "128MB"), (GB, "256MB"), (4 * GB, "1024MB"), (64 * GB, "2048MB")]
)
def test_shared_buffers_follow_the_memory(monkeypatch, memory, expected):
    monkeypatch.setattr(tuning, "_memory", lambda: memory)
    assert chosen()["shared_buffers"] == expected


@pytest.mark.parametrize(("free", "expected"), [(100 * GB, ("8GB", "1GB")), (39 * GB, ("2GB", "256MB"))])
def test_the_write_ahead_log_follows_the_disk(monkeypatch, free, expected):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(200 * GB, 0, free))
    assert (chosen()["max_wal_size"], chosen()["min_wal_size"]) == expected


def test_an_override_replaces_the_default_however_it_is_spelled():
    assert chosen({"JIT": "on", "timezone": "Europe/Berlin"})["jit"] == "on"
    assert chosen({"timezone": "Europe/Berlin"})["timezone"] == "Europe/Berlin"
