"""What is said when the embedded database cannot be had."""


class PostgresError(RuntimeError):
    """The embedded PostgreSQL cannot be started, reached or stopped; the message says what to do next."""
