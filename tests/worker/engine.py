"""An engine of containers that is none: its program talks to a service in the test, as docker does to its own."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

PYTHON = Path(sys.executable).resolve()
PROGRAM = """#!{python} -I
import json, os, signal, socket, sys
line = socket.socket(socket.AF_UNIX)
try:
    line.connect(os.environ["HOME"] + "/engine.sock")
except OSError:
    sys.exit(1)
words = sys.argv[1:]
asked = {{"words": words, "environment": dict(os.environ)}}
if words[0] == "run":
    asked["variables"] = open(words[words.index("--env-file") + 1]).read()
    asked["input"] = sys.stdin.read()
file = line.makefile("rw")
def say(what):
    file.write(json.dumps(what) + "\\n")
    file.flush()
signal.signal(signal.SIGTERM, lambda *_: say("stop"))
say(asked)
told = json.loads(file.readline())
sys.stderr.write(told["stderr"])
sys.exit(told["status"])
"""


class Service:
    """Containers are shells that are nobody's children but ours; the arguments of an image are their script."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.containers: dict[str, asyncio.subprocess.Process] = {}
        self.serving: set[asyncio.Task[Any] | None] = set()
        self._lines: list[asyncio.StreamWriter] = []

    def hang_up(self) -> None:
        """On everybody who waits for a container to end."""
        for line in self._lines:
            line.close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.serving.add(asyncio.current_task())
        asked = json.loads(await reader.readline())
        self.asked.append(asked)
        match asked["words"]:
            case ["run", *_]:
                self._lines.append(writer)
                answer = await self._run(asked, reader)
            case ["rm", "--force", name]:
                with suppress(ProcessLookupError):
                    self.containers[name].send_signal(signal.SIGKILL)
                await self.containers[name].wait()
                answer = {"stderr": "", "status": 0}
            case _:
                answer = {"stderr": "", "status": 0}
        writer.write(json.dumps(answer).encode() + b"\n")
        writer.close()

    async def _run(self, asked: dict[str, Any], reader: asyncio.StreamReader) -> dict[str, Any]:
        words = asked["words"]
        script = words[words.index("--") + 2 :]
        pipe = asyncio.subprocess.PIPE
        container = await asyncio.create_subprocess_exec("/bin/sh", "-c", *script, stdin=pipe, stderr=pipe)
        self.containers[words[words.index("--name") + 1]] = container

        async def pass_on() -> None:
            while await reader.readline():
                container.send_signal(signal.SIGTERM)

        listening = asyncio.ensure_future(pass_on())
        _, stderr = await container.communicate(asked["input"].encode())
        listening.cancel()
        return {"stderr": stderr.decode(), "status": container.returncode}


@asynccontextmanager
async def open_engine(home: Path) -> AsyncIterator[Service]:
    """`home` is then where the program and its socket are; HOME must lead there."""
    service = Service()
    (home / "engine").write_text(PROGRAM.format(python=PYTHON))
    (home / "engine").chmod(0o755)
    server = await asyncio.start_unix_server(service.serve, str(home / "engine.sock"))
    yield service
    server.close()
    for container in service.containers.values():  # none is left, unless a test has failed
        with suppress(ProcessLookupError):
            container.kill()
    await asyncio.gather(*filter(None, service.serving), return_exceptions=True)
