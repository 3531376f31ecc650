"""Reading query plans: which indexes, which scans, how many rows."""

import json
from collections.abc import Iterator
from typing import Any

from foliot.store.database import Line
from foliot.store.statements import SQL

HOT = frozenset({"run", "ready", "timer", "claim"})


class Plan:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.nodes = list(_walk(root))

    def indexes(self, table: str) -> set[str]:
        return {node["Index Name"] for node in self._reading(table) if "Index Name" in node}

    def whole_scans(self) -> set[str]:
        """Hot tables that are read from end to end."""
        return {node["Relation Name"] for node in self.nodes if node["Node Type"] == "Seq Scan"} & HOT

    def rows_read(self, table: str) -> int:
        """Rows fetched from a table, those thrown away included."""
        return sum(
            (node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0))
            * node["Actual Loops"]
            for node in self._reading(table)
        )

    @property
    def pages_read(self) -> int:
        """Pages that were looked at, in memory or not."""
        return int(self.root["Shared Hit Blocks"] + self.root["Shared Read Blocks"])

    def _reading(self, table: str) -> list[dict[str, Any]]:
        return [
            node for node in self.nodes if node.get("Relation Name") == table and node["Node Type"].endswith("Scan")
        ]


async def explain(line: Line, name: str, *arguments: Any) -> Plan:
    """Run a statement of the store, take it back, and tell how it was done."""
    async with line.borrow(atomic=False) as connection:
        transaction = connection.transaction()
        await transaction.start()
        try:
            text = await connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {SQL[name]}", *arguments)
        finally:
            await transaction.rollback()
    return Plan(json.loads(text)[0]["Plan"])


def _walk(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _walk(child)
