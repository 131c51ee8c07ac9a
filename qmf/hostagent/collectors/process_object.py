"""The managed object of one process, with its method."""

from __future__ import annotations

import psutil

from qmf.agent import MethodError, Ref
from qmf.errors import NotFoundError
from qmf.hostagent.collectors.signals import parse_signal
from qmf.hostagent.machine import ProcessHandle
from qmf.models.host import agent as model

# QMF2.md 4.6
_INVALID_PARAMETER = 4
_FORBIDDEN = 6


class ProcessObject(model.Process):
    """The managed object of a process; its method sends a signal if the operator allows it."""

    def __init__(self, handle: ProcessHandle, *, system: Ref, allowed: bool) -> None:
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
            # psutil checks that the number does not belong to another process by now.
            self._handle.send_signal(number)
        except psutil.NoSuchProcess as error:
            raise MethodError(f"process {self.pid} is gone") from error
        except (psutil.AccessDenied, PermissionError) as error:
            raise MethodError(f"not permitted to signal process {self.pid}", _FORBIDDEN) from error
