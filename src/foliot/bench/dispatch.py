"""The measurements of dispatch, in the order in which they are made."""

from typing import Final

from foliot.bench import carried, cold, encryption, fairness, graphs, held, http, inflight, limits, soak, submissions

_IN_ORDER: Final = (
    http.SECTION,
    submissions.SECTION,
    carried.GATEWAY,
    carried.FLEET,
    cold.SECTION,
    inflight.SECTION,
    fairness.SECTION,
    limits.SECTION,
    graphs.SECTION,
    held.SECTION,
    encryption.SECTION,
)
SECTIONS: Final = {each.name: each for each in _IN_ORDER}
LONG: Final = {soak.SECTION.name: soak.SECTION}
"""Only when asked for by name."""
