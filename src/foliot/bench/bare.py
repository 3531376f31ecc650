"""What the web server alone could do: the same body read and checked, an id answered, and nothing kept."""

import itertools
import sys

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from foliot.domain.ids import encode
from foliot.wire.run_views import Accepted
from foliot.wire.runs import RunBody


def bare() -> Starlette:
    """Starlette and msgspec, as their own documentation would have it."""
    decoder, numbers = msgspec.json.Decoder(RunBody), itertools.count(1)

    async def create_run(request: Request) -> Response:
        decoder.decode(await request.body())
        made = Accepted(encode("run", next(numbers)))
        return Response(msgspec.json.encode(made), 201, media_type="application/json")

    return Starlette(routes=[Route("/v1/runs", create_run, methods=["POST"])])


if __name__ == "__main__":
    # As the API is served: nothing that one of the two does and the other does not.
    uvicorn.run(
        bare(),
        port=int(sys.argv[1]),
        log_level="warning",
        access_log=False,
        lifespan="off",
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=75,
    )
