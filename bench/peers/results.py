"""One JSON file per peer: what was measured, and what is still to be."""

import json
import statistics
from pathlib import Path
from typing import Any, Final

from bench.peers.peer import Peer

Record = dict[str, Any]
DESCRIBED: Final = ("packages", "settings", "candidates")
"""What must not change between two repeats of one peer."""


class Results:
    """The folder of one plan on one commit; a peer with all its repeats is finished."""

    def __init__(self, folder: Path, repeats: int) -> None:
        self._folder = folder
        self._repeats = repeats

    def load(self, peer: Peer) -> Record:
        """What is kept of this peer; numbers that were taken with other versions or settings do not count."""
        path, anew = self._folder / f"{peer.name}.json", describe(peer)
        kept: Record = json.loads(path.read_text()) if path.exists() else anew
        return kept if all(kept.get(name) == anew[name] for name in DESCRIBED) else anew

    def is_untried(self, peer: Peer) -> bool:
        """Whether its candidates are still to be tried: before its first repeat, and once."""
        record = self.load(peer)
        return bool(peer.candidates) and not record["tried"] and not record["repeats"]

    def keep_tries(self, peer: Peer, tried: list[Record], chosen: str) -> None:
        self._write(peer, {**self.load(peer), "tried": tried, "chosen": chosen})

    def chosen(self, peer: Peer) -> Peer:
        """The peer as it is measured."""
        settings = self.load(peer)["chosen"]
        return next((peer.running(each) for each in peer.candidates if each.settings == settings), peer)

    def is_due(self, peer: Peer, number: int) -> bool:
        """Whether repeat `number` of this peer is still to be measured in this folder."""
        return len(self.load(peer)["repeats"]) <= number < self._repeats

    def add(self, peer: Peer, numbers: Record) -> None:
        record = {**self.load(peer), "notMeasured": None}
        record["repeats"].append(numbers)
        self._write(peer, record)

    def refuse(self, peer: Peer, why: str) -> None:
        """Note why a peer could not be measured; the next run tries again."""
        self._write(peer, {**self.load(peer), "notMeasured": why})

    def forget(self, peer: Peer) -> None:
        (self._folder / f"{peer.name}.json").unlink(missing_ok=True)

    def _write(self, peer: Peer, record: Record) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{peer.name}.json"
        draft = path.with_suffix(".draft")
        draft.write_text(json.dumps(record, indent=1) + "\n")
        draft.replace(path)


def describe(peer: Peer) -> Record:
    return {
        "name": peer.name,
        "title": peer.title,
        "version": peer.version,
        "packages": list(peer.packages),
        "store": peer.store,
        "settings": peer.settings,
        "candidates": [each.settings for each in peer.candidates],
        "tried": [],
        "chosen": peer.candidates[0].settings if peer.candidates else "",
        "durability": peer.durability,
        "bulkCall": peer.bulk,
        "mostWaiting": peer.most_waiting,
        "notChosen": peer.not_chosen,
        "notMeasured": None,
        "repeats": [],
    }


def lacking(records: list[Record], repeats: int) -> list[str]:
    """Peers that have not all their repeats, in words."""
    return [
        f"{each['title']} has {len(each['repeats'])} of {repeats} repeats"
        for each in records
        if len(each["repeats"]) < repeats
    ]


def summary(record: Record, name: str) -> dict[str, float] | None:
    """The median, the least and the most of one number over the repeats that have it."""
    return spread([each[name] for each in record["repeats"] if each.get(name) is not None])


def schedule_summary(record: Record, count: int, name: str) -> dict[str, float] | None:
    return spread([each[f"due{count}"][name] for each in record["repeats"] if f"due{count}" in each])


def spread(values: list[float]) -> dict[str, float] | None:
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "repeats": len(values)}


def errors(record: Record) -> dict[str, str]:
    """What went wrong in any repeat, by cell; the last word of each."""
    return {cell: why for each in record["repeats"] for cell, why in each.get("errors", {}).items()}
