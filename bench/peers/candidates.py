"""Which of a peer's documented settings is the fastest: each is tried briefly before anything is measured."""

import time
from dataclasses import replace
from typing import Any, Final

from bench.peers.measure import Repeat
from bench.peers.peer import Home
from bench.peers.plan import Plan
from bench.peers.servers import Store

TURNS: Final = 2
"""How often each is tried. Its better try counts: a moment in which the machine was busy is not its fault."""
Try = dict[str, Any]


async def try_out(home: Home, store: Store, plan: Plan) -> list[Try]:
    """Every candidate of this peer under sustained load, in turns; who fails is told with why."""
    candidates, brief = home.peer.candidates, replace(plan, seconds=plan.try_seconds)
    tried: list[Try] = [{"settings": each.settings, "rates": [], "error": "", "seconds": 0.0} for each in candidates]
    for candidate, told in [*zip(candidates, tried, strict=True)] * TURNS:
        began = time.monotonic()
        numbers = await Repeat(home.running(candidate), store, brief).run("sustained")
        if "sustained" in numbers:
            told["rates"].append(numbers["sustained"])
        told["error"] = numbers["errors"].get("sustained", told["error"])
        told["seconds"] += time.monotonic() - began
    return tried


def fastest(tried: list[Try]) -> Try | None:
    """None if not one of them came to a rate: then nothing is known."""
    return max((told for told in tried if told["rates"]), key=lambda told: max(told["rates"]), default=None)


def in_words(told: Try) -> str:
    rates = ", ".join(f"{each:,.0f}" for each in told["rates"])
    why = told["error"].replace("|", "/")  # it stands in a table
    return ", ".join(filter(None, (rates, why and f"failed: {why}")))
