"""A real PostgreSQL as our own child process, for when none is given."""

from foliot.kit.postgres.binaries import Binaries, find_binaries
from foliot.kit.postgres.errors import PostgresError
from foliot.kit.postgres.server import PostgresServer

__all__ = ["Binaries", "PostgresError", "PostgresServer", "find_binaries"]
