"""What the web server alone could do: the same body read and checked, an id answered, and nothing kept."""

import asyncio
import itertools
import sys

import msgspec
import uvloop
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from foliot.api.server import serve
from foliot.cli.compose import bind
from foliot.domain.ids import encode
from foliot.wire.runs import RunBody
from foliot.wire.views import Accepted


def bare() -> Starlette:
    """Starlette and msgspec, as their own documentation would have it."""
    decoder, numbers = msgspec.json.Decoder(RunBody), itertools.count(1)

    async def create_run(request: Request) -> Response:
        decoder.decode(await request.body())
        made = Accepted(encode("run", next(numbers)))
        return Response(msgspec.json.encode(made), 201, media_type="application/json")

    return Starlette(routes=[Route("/v1/runs", create_run, methods=["POST"])])


async def main(port: int) -> None:
    with bind("127.0.0.1", port) as listener:
        await serve(bare(), listener, asyncio.Event())


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
