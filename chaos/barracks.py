"""What lets the workers under test run commands, where the machine does: one command, and who of it is alive."""

import os
import shutil
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from chaos.ground import Lacking
from foliot.cli.commands import how_to_mend, may_run
from foliot.domain.commands import SEARCHED
from foliot.worker.child.nursery import open_nursery
from foliot.worker.commands.folders import open_folders
from foliot.worker.commands.isolation import probe

_POLICY: Final = """
readable = ["{command}", "{ledger}"]
[tenants."*"]
allow = [["{python}", "-I", "{command}"]]
"""


class Barracks:
    def __init__(self, home: Path, ledger: Path) -> None:
        """`home`: a folder that everybody may enter. `ledger`: the socket to which commands report."""
        python = shutil.which("python3", path=SEARCHED)
        if sys.platform != "linux" or python is None:
            raise Lacking("there is no Python here that every user may run")
        self._command = home / "emitter.py"
        self._policy = home / "commands.toml"
        shutil.copyfile(Path(__file__).with_name("emitter.py"), self._command)
        self._policy.write_text(_POLICY.format(command=self._command, ledger=ledger, python=python))
        self._command.chmod(0o644)
        self._policy.chmod(0o600)
        self.argv = (python, "-I", str(self._command), str(ledger))

    async def inspect(self) -> None:
        """Raise Lacking if workers would keep commands off here."""
        async with open_nursery() as nursery:
            with open_folders() as folders:
                isolation = await probe(nursery, folders)
        if not may_run(isolation, same_user=True):
            raise Lacking(how_to_mend(isolation))

    def environment(self) -> dict[str, str]:
        same_user = {"FOLIOT_COMMANDS_SAME_USER": "1"} if os.geteuid() else {}
        return {"FOLIOT_COMMANDS": str(self._policy), **same_user}

    def living(self) -> list[str]:
        """Processes of commands: their ids, and what they are called."""
        found, mine = [], os.fsencode(self._command)
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if mine in (words := path.read_bytes()):
                    found.append(f"{path.parent.name} ({words.rstrip(bytes(1)).replace(bytes(1), b' ').decode()})")
        return found

    def clear(self) -> None:
        """Nobody may outlive the harness, whatever the product made of it."""
        for process in self.living():
            with suppress(ProcessLookupError):
                os.kill(int(process.split()[0]), signal.SIGKILL)
