"""Runs containers on an engine of the test; also as a process of its own, to be stopped and killed."""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec

from foliot.domain.commands import CommandPolicy
from foliot.domain.outcome import Answer
from foliot.domain.spec import ContainerHandler, Spec
from foliot.kit.tasks import background
from foliot.worker.child.nursery import Nursery, open_nursery
from foliot.worker.commands.attendant import Attendant, Ended
from foliot.worker.commands.containers import Containers, Engine, find_engine
from foliot.worker.commands.folders import Folders, open_folders
from worker.making import assignment
from worker.supervisor import renew

IMAGE = "ghcr.io/acme/report:1"
POLICY = {
    "limits": {"processes": 50, "memory-mib": 512},
    "environment": {"TZ": "UTC"},
    "tenants": {"growth": {"images": ["ghcr.io/acme/*"]}, "sales": {"images": ["*"], "network": True}},
}
LEASE = 1.0


class Dock:
    def __init__(self, engine: Engine, nursery: Nursery, folders: Folders) -> None:
        self.heard: list[Ended] = []
        attendant = Attendant(nursery, told=self.heard.append)
        self._containers = Containers(attendant, msgspec.convert(POLICY, CommandPolicy), engine, folders)

    async def run(self, script: str, tenant: str = "growth", **fields: Any) -> Answer:
        handler = ContainerHandler(**{"image": IMAGE, "args": (script,), **fields})
        return await self._containers.execute(tenant, assignment(Spec(handler=handler)))


async def main(home: Path, script: str) -> None:
    engine = await find_engine([str(home / "engine")])
    assert engine is not None
    silence = timedelta(seconds=LEASE)
    async with open_nursery(silence=silence) as nursery, background(renew(nursery, LEASE)):
        with open_folders(home) as folders:
            await Dock(engine, nursery, folders).run(script)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
