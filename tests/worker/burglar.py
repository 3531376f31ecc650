"""A command that tries to get out: it says what it got hold of. Run by the system's own Python, with nothing but it."""

# ruff: noqa: PTH110, PTH208 - what it does, it does by hand

import ctypes
import json
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_USER, NEW_MOUNT, ATTACH, SET_ATTRIBUTES = 0x10000000, 0x00020000, 16, 442


def read(path):
    with suppress(OSError):
        return Path(path).read_bytes()[:1_000].decode(errors="replace")


def write(path):
    with suppress(OSError), Path(path).open("a"):
        return path


def look_into(planted):
    """Processes in whose environment or memory the secret can be seen."""
    me = str(os.getpid())
    return [
        pid
        for pid in os.listdir("/proc")
        if pid.isdigit() and pid != me and planted in (read(f"/proc/{pid}/environ") or "")
    ]


def attach(pid):
    with suppress(OSError):
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY))
        return pid
    return pid if LIBC.ptrace(ATTACH, pid, 0, 0) == 0 else None


def signal(pid):
    with suppress(OSError):
        os.kill(pid, 0)
        return pid


def connect(kind, address):
    with suppress(OSError), socket.socket(kind) as line:
        line.settimeout(1)
        line.connect(tuple(address) if isinstance(address, list) else address)
        return address


def undo():
    """With privileges in a user namespace of its own, where the kernel lets: lift the lids, write where it may not."""
    if LIBC.unshare(NEW_USER | NEW_MOUNT):
        return []
    done = [path for path in ("/tmp", "/proc", "/dev/shm") if LIBC.umount2(path.encode(), 2) == 0]
    clear = (ctypes.c_uint64 * 4)(0, 1, 0, 0)
    if LIBC.syscall(SET_ATTRIBUTES, -100, b"/", 0, ctypes.byref(clear), ctypes.c_size_t(32)) == 0:
        done += filter(None, [write("/etc/foliot-was-here")])
    return done


def become_root():
    with suppress(OSError):
        os.setuid(0)
        return True
    return LIBC.mount(b"none", b"/mnt", b"tmpfs", 0, None) == 0


def status(*names):
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: lines[name].strip() for name in names}


def main():
    given = json.load(sys.stdin)
    listing = os.listdir("/proc/self/fd")
    found = {
        "read": [path for path in given["files"] if read(path)],
        "written": [path for path in map(write, given["places"]) if path],
        "environment": [name for name, value in os.environ.items() if given["planted"] in value],
        "looked_into": look_into(given["planted"]),
        "attached": [pid for pid in map(attach, given["pids"]) if pid],
        "signalled": [pid for pid in map(signal, given["pids"]) if pid],
        "descriptors": [each for each in listing if int(each) > 2 and os.path.exists(f"/proc/self/fd/{each}")],
        "reached": [each for each in given["addresses"] if connect(socket.AF_INET, each)],
        "unix": [each for each in given["sockets"] if connect(socket.AF_UNIX, each)],
        "root": become_root(),
        "ids": [os.getuid(), os.getgid(), os.getgroups()],
        "status": status("NoNewPrivs", "CapEff", "CapPrm", "CapAmb"),
        "undone": undo(),
    }
    print(json.dumps(found))  # noqa: T201 - its loot


main()
