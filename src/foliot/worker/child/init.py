"""The first process of a command's pid namespace. Standard library only: the guardian imports it.

The kernel protects whoever has number 1 from signals, so the command itself cannot be it: SIGTERM would not reach it.
When this one ends, the kernel kills everybody who is left in the namespace, whatever they have done to hide.
"""

import os
import signal
import struct
from typing import Final, NoReturn

STATUS: Final = struct.Struct("!i")


def reign(command: int, verdict: int) -> NoReturn:
    """Bury whoever ends until the command does; leave its wait status in `verdict`, and end."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.closerange(0, verdict)
    os.closerange(verdict + 1, os.sysconf("SC_OPEN_MAX"))
    while True:
        pid, status = os.wait()
        if pid == command:
            os.write(verdict, STATUS.pack(status))
            os._exit(0)
