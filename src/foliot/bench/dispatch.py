"""The measurements of dispatch, in the order in which they are made."""

from typing import Final

from foliot.bench import cold, fairness, held, http, inflight, soak

SECTIONS: Final = {
    each.name: each for each in (http.SECTION, cold.SECTION, inflight.SECTION, fairness.SECTION, held.SECTION)
}
LONG: Final = {soak.SECTION.name: soak.SECTION}
"""Only when asked for by name."""
