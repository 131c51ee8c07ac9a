"""What the C library says of the memory of this process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from qmf.broker.management.sampling import SampledObject
from qmf.models.broker import agent as model

#: The fields of glibc's `mallinfo` in their order, as far as the schema has them.
_FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
_SHOWN = tuple(name for name in _FIELDS if not name.startswith(("sm", "usm", "fsm")))


class _Mallinfo2(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _FIELDS]


def _reader() -> Callable[[], _Mallinfo2] | None:
    """The function of the C library; None where it has none: it is glibc's, from 2.33 on."""
    try:
        found = ctypes.CDLL(None).mallinfo2
    except (AttributeError, OSError):
        return None
    found.restype = _Mallinfo2
    found.argtypes = ()
    read: Callable[[], _Mallinfo2] = found
    return read


class ManagedMemory(model.Memory, SampledObject):
    """The memory of the process; without values where the C library reports none."""

    def __init__(self, name: str) -> None:
        super().__init__(name=name)
        self._read = _reader()

    def sample(self) -> None:
        if self._read is None:
            return
        found = self._read()
        for name in _SHOWN:
            setattr(self, f"malloc_{name}", getattr(found, name))
