"""Tasks with an owner: started with a block, gone when it ends."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def background(*coroutines: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run these beside the block: cancelled when it ends; if one of them fails, so does the block."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(coroutine) for coroutine in coroutines]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
    except BaseExceptionGroup as failures:
        # One thing went wrong, as a rule; who asks for it should not have to unwrap a group.
        raise failures.exceptions[0] from None
