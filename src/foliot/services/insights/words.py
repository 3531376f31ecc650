"""How a spec reads on the wire, the same for a job and for its runs."""

import msgspec

from foliot.domain.spec import Spec
from foliot.wire.limits import ConcurrencyBody, concurrency_body


def delivery_word(spec: Spec) -> str:
    return "atMostOnce" if spec.is_at_most_once else "atLeastOnce"


def concurrency_of(spec: Spec) -> ConcurrencyBody | msgspec.UnsetType:
    return msgspec.UNSET if spec.concurrency is msgspec.UNSET else concurrency_body(spec.concurrency)
