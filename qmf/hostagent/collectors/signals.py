"""Signals by name or number."""

from __future__ import annotations

import signal

from qmf.errors import NotFoundError


def parse_signal(text: str) -> int:
    """The number of a signal.

    Args:
        text: ``TERM``, ``SIGTERM`` or ``15``, in any case.

    Raises:
        NotFoundError: the system has no such signal; holds similar names.
    """
    wanted = text.strip().upper()
    valid = signal.valid_signals()
    if wanted.isascii() and wanted.isdecimal():
        if int(wanted) in valid:
            return int(wanted)
    else:
        name = wanted if wanted.startswith("SIG") else f"SIG{wanted}"
        number = getattr(signal, name, None)
        if isinstance(number, signal.Signals):
            return int(number)
    names = {item.name for item in valid if isinstance(item, signal.Signals)}
    raise NotFoundError("signal", text, names | {name.removeprefix("SIG") for name in names})
