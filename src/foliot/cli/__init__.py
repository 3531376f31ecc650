"""The command line: the only place that wires the rooms together."""

from foliot.cli.main import main

__all__ = ["main"]
