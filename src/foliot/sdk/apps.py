"""How an application is found by name: `module:worker`."""

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

from foliot.domain.errors import InvalidField
from foliot.sdk.worker import Worker


def load_app(reference: str) -> Worker:
    """Import MODULE and find its Worker; the current folder is on the path, as for `python -m`."""
    module, _, attribute = reference.partition(":")
    attribute = attribute or "worker"
    if not all(part.isidentifier() for part in (*module.split("."), attribute)):
        raise _bad(f"{reference!r} does not look like module:worker")
    sys.path.insert(0, os.getcwd())  # noqa: PTH109 - sys.path holds strings
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, but not what it imports: its own traceback says most
        raise _bad(f"there is no module {error.name!r} here") from None
    found = getattr(imported, attribute, None)
    if found is None:
        raise _bad(f"{module!r} has no {attribute!r}")
    if not isinstance(found, Worker):
        raise _bad(f"{reference!r} is a {type(found).__name__}, not a foliot.Worker")
    found.reference = reference
    return found


def reference_of(worker: Worker) -> str | None:
    """Under which name another process would find this worker; none if under no name at all."""
    if worker.reference is not None:
        return worker.reference
    modules = sys.modules.copy()  # not all of which are modules, whatever its type says
    for name in sorted(modules, key=lambda each: each == "__main__"):
        module, names = modules[name], getattr(modules[name], "__dict__", {})
        for attribute, value in names.copy().items():
            if value is worker and (found := _importable(module)):
                return f"{found}:{attribute}"
    return None


def _importable(module: ModuleType) -> str | None:
    """The name by which a module can be imported: of a program, that of its file, if it lies on the path."""
    if module.__name__ != "__main__":
        return module.__name__
    if module.__spec__ is not None:
        return module.__spec__.name
    file = getattr(module, "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    is_on_path = any(Path(each).resolve() == path.parent for each in sys.path)
    return path.stem if is_on_path and path.suffix == ".py" and path.stem.isidentifier() else None


def _bad(message: str) -> InvalidField:
    return InvalidField("app", message)
