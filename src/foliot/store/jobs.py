"""Jobs: definitions, who owns which instant, and what people see of them."""

from collections.abc import Sequence

from foliot.store.database import Line


async def fetch_names(line: Line, jobs: Sequence[int]) -> dict[int, str]:
    return {row["id"]: row["name"] for row in await line.fetch("job_names", jobs)}
