"""What a type checker says to an application, and whether other Pythons take the SDK."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

APPLICATION = """
from foliot import AsyncFoliot, Context, Foliot, Worker
from foliot.testing import Inline

worker = Worker()

@worker.task(cron="*/5 * * * *", max_retries=5)
async def refresh(ctx: Context, payload: dict[str, int]) -> int:
    return payload["n"]

@worker.task
def plain(ctx: Context, payload: str) -> None: ...

client = Foliot()
run = client.submit("refresh", {"n": 3}, delay="PT10S", priority="high")
reveal_type(refresh)  #: def (ctx: foliot.sdk.context.Context, payload: dict[str, int]) -> Coroutine[Any, Any, int]
reveal_type(plain)  #: def (ctx: foliot.sdk.context.Context, payload: str)
reveal_type(run)  #: foliot.sdk.client.lasting.Run
reveal_type(run.wait())  #: foliot.sdk.client.lasting.Run
reveal_type(run.finished_at)  #: datetime | None
reveal_type(client.list_jobs())  #: foliot.sdk.client.pages.Items[foliot.sdk.records.Job]
reveal_type(next(client.list_jobs().all()).next_run_at)  #: datetime | None
reveal_type(Inline(worker).run("refresh", {"n": 3}).check().error_class)  #: str | None
client.submit("refresh", max_retry=3)  #! Unexpected keyword argument "max_retry"
client.create_job("x", "refresh", every=60, overlap="never")  #! incompatible type
worker.task(plain, colour="blue")  #! No overload variant

async def main() -> None:
    async with AsyncFoliot() as aio:
        reveal_type(await (await aio.submit("refresh")).wait())  #: foliot.sdk.aio.lasting.AsyncRun
        async for each in (await aio.list_runs()).all():
            reveal_type(each)  #: foliot.sdk.aio.lasting.AsyncRun
"""


def test_a_type_checker_knows_what_calls_take_and_give(tmp_path: Path):
    (tmp_path / "shop.py").write_text(APPLICATION)
    # The project's own settings and cache: another set of options would check all of Foliot anew.
    command = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(tmp_path / "shop.py")]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=170, check=False).stdout
    heard = dict(re.findall(r"shop\.py:(\d+): (?:note|error): (.*)", said)[::-1])  # the first of a line counts
    for number, line in enumerate(APPLICATION.splitlines(), 1):
        if expected := re.search(r"#([:!]) (.*)$", line):
            told = re.sub(r"\b(typing|datetime)\.", "", heard.get(str(number), ""))
            assert expected[2] in told, (line, said)
    refused = {int(line) for line in re.findall(r"shop\.py:(\d+): error:", said)}
    assert refused == {number for number, line in enumerate(APPLICATION.splitlines(), 1) if "#!" in line}, said


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_another_python_takes_the_sdk(version: str, tmp_path: Path):
    own = "{}.{}".format(*sys.version_info)
    python = sys.executable if version == own else shutil.which(f"python{version}")
    if python is None or _run(python, "-c", "pass").returncode:
        pytest.skip(f"there is no python{version} here")
    # Of each file its syntax; what the packages that it needs allow, also its import.
    code = "import ast, pathlib, sys; [ast.parse(p.read_text()) for p in pathlib.Path(sys.argv[1]).rglob('*.py')]"
    parsed = _run(python, "-W", "error", "-c", code, str(ROOT / "src" / "foliot"))
    assert parsed.returncode == 0, parsed.stderr
    if missing := _run(python, "-c", "import aiohttp, asyncpg, msgspec, structlog").stderr:
        pytest.skip(f"python{version} parses it; to import it, it lacks: {missing.splitlines()[-1]}")
    path = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); "
    done = _run(python, "-W", "error", "-c", path + "from foliot.sdk import *; import foliot.testing; Worker()")
    assert done.returncode == 0, done.stderr


def _run(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
