"""Hides passwords on the command line of this process from those who list the processes of the machine."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence

from qmf._masking import MASK

#: The password of a broker's address: ``USER/PASSWORD@HOST``, ``USER:PASSWORD@HOST``, with a scheme or without.
_PASSWORD = re.compile(r"(?P<user>(?:^|(?<=//)|(?<==))[^/:@\s]+[/:])[^/@\s][^@\s]*(?=@[^@\s]+$)")


def mask_passwords(arguments: Sequence[str]) -> list[str]:
    """Arguments without the passwords in addresses."""
    return [_PASSWORD.sub(rf"\g<user>{MASK}", item) for item in arguments]


def hide_passwords() -> None:
    """Have `ps` show the arguments without passwords, if there are any. The command itself still reads them.

    Until then, while Python starts, they are visible; and without setproctitle they stay so.
    """
    if mask_passwords(sys.argv[1:]) == sys.argv[1:]:
        return
    try:
        from setproctitle import setproctitle  # imported here: most commands have nothing to hide
    except ModuleNotFoundError:
        return
    setproctitle(" ".join(mask_passwords(sys.orig_argv)))
