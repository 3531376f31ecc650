"""Mutants of what commands promise, and jobs that want only their newest run."""

from typing import Final

from chaos.mutant import Edit, Mutant, burst

_KILLS: Final = [burst((0.0, "kill", "worker-0"), (6.0, "kill", "worker-1"))]
_SECONDS: Final = 45.0

_KIN_LEFT = Mutant(
    "kin-left",
    "a guard ends the command's own process group and nobody else, and no namespace goes with it",
    (
        Edit(
            "worker/child/guard.py",
            '        self._end_all()\n        if order["last"]',
            '        send(-self._child, signal.SIGKILL)\n        if order["last"]',
        ),
        Edit(
            "worker/child/confine.py",
            'PARTS: Final = ("user", "pid", "mount", "proc", "read-only", "net", "ipc", "uts")',
            'PARTS: Final = ("user", "mount", "read-only", "net", "ipc", "uts")',
        ),
    ),
    _KILLS,
    _SECONDS,
)
_NEWEST_WAITS = Mutant(
    "newest-waits",
    "a run that is to make way for a newer one is not asked to stop",
    (
        Edit(
            "store/migrations/0017_stopping.sql",
            "    IF held IS NOT NULL THEN\n        PERFORM ask_to_stop(held);\n",
            "    IF false THEN\n        PERFORM ask_to_stop(held);\n",
        ),
    ),
    _KILLS,
    _SECONDS,
)
OF_COMMANDS: Final = (_KIN_LEFT, _NEWEST_WAITS)
