"""Where the API listens, and what it says about it."""

import ipaddress

from structlog.testing import capture_logs

from foliot.cli.compose import bind
from foliot.kit.settings import Settings


def test_nobody_else_reaches_the_api_unless_told_so_and_then_it_warns():
    usual = Settings.read({}).host
    assert ipaddress.ip_address(usual).is_loopback
    with capture_logs() as said, bind(usual, 0):
        assert not said
    with capture_logs() as said, bind("0.0.0.0", 0):
        (warning,) = said
    assert warning["log_level"] == "warning"
    assert "proxy with TLS" in warning["event"]
