"""When a program looks for garbage that is in cycles: seldom, where most of what it makes stays, or is freed by itself.

For programs alone: it is a matter of the whole process.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

#: Objects that are made, beyond those that are freed again, before the youngest are looked at; less than a tenth of it
#: by default.
THRESHOLD = 20_000


def collect_seldom() -> None:
    """Look for garbage from now on, but not among what there is, and seldom."""
    gc.freeze()
    gc.set_threshold(THRESHOLD)
    gc.enable()


@contextmanager
def collecting_seldom() -> Iterator[None]:
    """The same within; afterwards as before, and among all that there is."""
    before = gc.get_threshold()
    collect_seldom()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()
