"""Hides an argument of this process from the list of processes, where the system allows that.

The arguments are visible to all users of a machine (``ps``). On Linux they are text in this process's memory, which it
may overwrite; elsewhere nothing is done.
"""

from __future__ import annotations

from pathlib import Path

from qmf.bus.url import hide_password

#: Fields of /proc/self/stat with the address of the arguments, counted from the one after the name in brackets.
_ARG_START = 48 - 3


def hide_argument(url: str) -> bool:
    """Overwrite the password in an argument of this process that holds `url`.

    Returns:
        True if the list of processes doesn't show it any more.
    """
    secret = url.encode(errors="surrogateescape")
    head, _, tail = hide_password(url).partition("***")
    stars = len(secret) - len(head.encode(errors="surrogateescape")) - len(tail.encode(errors="surrogateescape"))
    shown = f"{head}{'*' * stars}{tail}".encode(errors="surrogateescape")
    try:
        arguments = Path("/proc/self/cmdline").read_bytes()
        if secret not in arguments:
            return False
        start = int(Path("/proc/self/stat").read_text(encoding="ascii").rpartition(")")[2].split()[_ARG_START])
        hidden = arguments.replace(secret, shown)
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(hidden)
    except (OSError, ValueError, IndexError, OverflowError):
        return False  # another system, or one that forbids it: the warning remains
    return True
