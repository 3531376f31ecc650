"""A helper process must not outlive the harness that started it."""

import os
import threading


def leave_with_parent() -> None:
    """End this process when its standard input does: the harness holds the other end, whatever becomes of it."""
    threading.Thread(target=_watch, daemon=True).start()


def _watch() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)
