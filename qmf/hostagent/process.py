"""The object of one process, with the one thing that can be done to it."""

from __future__ import annotations

import psutil

from qmf.agent import MethodError, Ref
from qmf.errors import NotFoundError
from qmf.hostagent.signals import parse_signal
from qmf.hostagent.source import Process as Handle
from qmf.models.host import agent as model

# QMF2.md 4.6
_INVALID_PARAMETER = 4
_FORBIDDEN = 6


class Process(model.Process):
    """A process's object; its method sends a signal if the operator allows it."""

    def __init__(self, handle: Handle, *, system: Ref, allowed: bool) -> None:
        super().__init__(pid=handle.pid, systemRef=system)
        self._handle = handle
        self._allowed = allowed

    def signal(self, signal: str) -> None:
        if not self._allowed:
            raise MethodError("signals are not allowed: start the host agent with --allow-signals", _FORBIDDEN)
        try:
            number = parse_signal(signal)
        except NotFoundError as error:
            raise MethodError(str(error), _INVALID_PARAMETER) from error
        try:
            # psutil makes sure that the number has not gone to another process meanwhile.
            self._handle.send_signal(number)
        except psutil.NoSuchProcess as error:
            raise MethodError(f"process {self.pid} is gone") from error
        except (psutil.AccessDenied, PermissionError) as error:
            raise MethodError(f"not permitted to signal process {self.pid}", _FORBIDDEN) from error
