"""`foliot audit …`: what was done, and the proof."""

from pathlib import Path

import pytest

from cli.conftest import Shell
from foliot.kit.objects import Folder
from foliot.services.seal import Notary, Sealer
from world import World

KEY = "k" * 64


@pytest.fixture
def signing(folder: Path, shell: Shell, dsn: str) -> Notary:
    """As an operator sets it up."""
    (folder / "audit.key").write_text(f"{KEY}\n")
    shell.environment |= {
        "FOLIOT_DATABASE_URL": dsn,
        "FOLIOT_OBJECTS": str(folder / "objects"),
        "FOLIOT_AUDIT_KEY_FILE": str(folder / "audit.key"),
    }
    return Notary(Folder(folder / "objects"), [KEY.encode()])


async def test_changes_are_listed_and_found_again(shell: Shell):
    job = (await shell.json("job", "create", "report", "noop", "--every", "PT1H"))["jobId"]
    await shell("job", "pause", job)
    assert [each["action"] for each in await shell.json("audit", "list", "--subject", job)] == ["pauseJob", "createJob"]
    said = await shell("audit", "list", "--action", "pauseJob")
    assert job in said
    assert "createJob" not in said
    assert await shell("audit", "list", "--outcome", "denied") == "nothing of that kind is noted\n"


async def test_the_trail_is_proven_and_a_forged_one_is_not(shell: Shell, world: World, signing: Notary):
    await shell("tenant", "weight", "acme", "3")
    (entry,) = await world.sql("SELECT tenant, actor, action FROM audit")
    assert (entry["tenant"], entry["action"]) == (world.tenant, "tenant weight")
    assert "@" in entry["actor"]
    sealer = Sealer(world.database, signing)
    while await sealer.run_once():
        pass
    assert "ok: every entry is what was sealed, and what was signed" in await shell("audit", "verify")
    assert (await shell.json("audit", "verify"))["checkpoints"] == 1
    await world.sql("ALTER TABLE audit DISABLE TRIGGER ALL")
    await world.sql("UPDATE audit SET actor = 'somebody else'")
    said = await shell("audit", "verify", code=1)
    assert "BAD tenant 1: the entry at position 1 is not what was sealed" in said


async def test_what_cannot_sign_is_told(shell: Shell, folder: Path, signing: Notary):
    (folder / "audit.key").write_text("short")
    assert "openssl rand -hex 32" in await shell("audit", "verify", code=1)
    (folder / "audit.key").unlink()
    assert "look at FOLIOT_AUDIT_KEY_FILE and FOLIOT_OBJECTS" in await shell("audit", "verify", code=1)
