"""Addresses that no worker would call are refused when a job or a run names them."""

from foliot.api.operation import Call
from foliot.domain.errors import InvalidField
from foliot.domain.spec import HttpHandler


def check_target(call: Call, handler: object) -> None:
    """Refuse what is certain without a name server; a name may lead anywhere by the time that it is called."""
    match handler:
        case str() if "://" in handler:
            url, field = handler, "handler"
        case HttpHandler(url=str(url)):
            field = "handler.url"
        case _:
            return
    if (refusal := call.services.egress.refusal_of_url(url)) is not None:
        raise InvalidField(field, refusal.message, refusal.hint)
