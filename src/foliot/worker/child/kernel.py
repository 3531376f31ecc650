"""What the kernel can do that Python has no word for. Standard library only: the guardian imports it."""

import ctypes
import os
import sys
from typing import Final

NEW_USER: Final = 0x10000000
NEW_PID: Final = 0x20000000
NEW_MOUNT: Final = 0x00020000
NEW_NET: Final = 0x40000000
NEW_IPC: Final = 0x08000000
NEW_UTS: Final = 0x04000000

BIND: Final = 0x1000
RECURSIVE: Final = 0x4000
PRIVATE: Final = 0x40000
NOSUID, NODEV, NOEXEC = 0x2, 0x4, 0x8

_PDEATHSIG, _DUMPABLE, _SUBREAPER, _NO_NEW_PRIVILEGES, _AMBIENT = 1, 4, 36, 38, 47
_CLEAR_ALL: Final = 4
_CAPABILITY_VERSION: Final = 0x20080522
_MOUNT_SETATTR: Final = 442  # the same on every architecture: it came after they had agreed
_KEYCTL: Final = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "ppc64le": 271, "s390x": 280}
_JOIN_SESSION: Final = 1
_AT_FDCWD: Final = -100
_AT_RECURSIVE: Final = 0x8000
_READ_ONLY: Final = 1


def _check(result: int, *about: object) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), *about)


def _libc() -> ctypes.CDLL:
    if sys.platform != "linux":
        raise OSError(38, "only Linux can do this")
    return ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave namespaces for new ones; of a new pid namespace only children will be members."""
    _check(_libc().unshare(flags))


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, options: str = "") -> None:
    encoded = [None if text is None else os.fsencode(text) for text in (source, target, kind)]
    _check(_libc().mount(*encoded, ctypes.c_ulong(flags), os.fsencode(options)), target)


def set_writable(target: str, *, writable: bool, recursive: bool = False) -> None:
    """Of a mount that this process sees; other mount namespaces keep their own word about it."""
    attributes = (ctypes.c_uint64 * 4)(0 if writable else _READ_ONLY, _READ_ONLY if writable else 0, 0, 0)
    flags = _AT_RECURSIVE if recursive else 0
    path, size = os.fsencode(target), ctypes.c_size_t(ctypes.sizeof(attributes))
    _check(_libc().syscall(_MOUNT_SETATTR, _AT_FDCWD, path, flags, ctypes.byref(attributes), size), target)


def adopt_orphans() -> None:
    """Become a *subreaper*: whom our descendants leave behind, double-forked or in a session of their own, is ours.

    Only on Linux; elsewhere they are nobody's, and only process groups can be killed.
    """
    _prctl(_SUBREAPER, 1)


def die_with_parent(number: int) -> None:
    """Have the kernel send us this signal when our parent dies (on Linux). A change of user forgets it."""
    _prctl(_PDEATHSIG, number)


def be_readable(readable: bool) -> None:
    """Whether processes of the same user may look into our memory, our environment and our open files."""
    _prctl(_DUMPABLE, int(readable))


def forget_keys() -> None:
    """Have an empty keyring instead of the session's, through which whoever has it may read what others put there."""
    if number := _KEYCTL.get(os.uname().machine):
        _libc().syscall(number, _JOIN_SESSION, None)


def renounce_privileges() -> None:
    """For good, whatever is executed next: no capability is left, and no set-user-id program brings one back."""
    _check(_libc().prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _libc().prctl(_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    header, nothing = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)()
    _check(_libc().capset(ctypes.byref(header), ctypes.byref(nothing)))


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        _libc().prctl(option, value, 0, 0, 0)
