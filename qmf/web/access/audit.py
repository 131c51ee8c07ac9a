"""The log of calls, changes, logins and refusals, to the logger ``qmf.web.audit``, in lines of `audit_line`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Iterator

from qmf._audit_log import audit_line
from qmf._masking import without_secrets
from qmf.errors import ConstraintError, QmfError
from qmf.web.problems import Problem, problem_of
from qmf.web.scopes import Caller

log = logging.getLogger("qmf.web.audit")


class AuditLog:
    """Writes the records."""

    def log_allowed(self, caller: Caller, action: str, **details: object) -> None:
        """Something was done for a caller: a login.

        Args:
            caller: who asked.
            action: in a word, e.g. ``call``.
            details: more fields.
        """
        log.info("%s", _line(action, caller.name, caller.address, caller.proof.value, "done", details))

    def log_refused(self, action: str, *, name: str, address: str, reason: str, **details: object) -> None:
        """Something was refused.

        Args:
            action: what was asked for.
            name: who asked, as known so far; may be empty.
            address: of the client.
            reason: why it was refused, in one line.
            details: more fields.
        """
        log.warning("%s", _line(action, name, address, "refused", "refused", {"reason": reason, **details}))

    @contextlib.contextmanager
    def attempt(self, caller: Caller, action: str, **details: object) -> Iterator[dict[str, object]]:
        """Something is done for a caller until the end of the block; the record says how it ended, and after how long.

        The results are ``done``, ``refused`` (as the caller's mistake, or not allowed), ``failed`` and ``cancelled``.

        Args:
            caller: who asked.
            action: in a word, e.g. ``call``.
            details: more fields, of which the block may add some.
        """
        begin = time.perf_counter()
        result, reason = "done", None
        try:
            yield details
        except (QmfError, Problem) as error:
            problem = error if isinstance(error, Problem) else problem_of(error)
            result = "refused" if problem.status < 500 else "failed"
            # The text of the error repeats the value.
            reason = f"{error.where}: {error.reason}" if isinstance(error, ConstraintError) else problem.detail
            raise
        except asyncio.CancelledError:
            result, reason = "cancelled", "it was not waited for any longer"
            raise
        finally:
            found = {**details, "duration": round(time.perf_counter() - begin, 6)}
            if reason is None:
                log.info("%s", _line(action, caller.name, caller.address, caller.proof.value, result, found))
            else:
                found["reason"] = without_secrets(reason, details)
                log.warning("%s", _line(action, caller.name, caller.address, "refused", result, found))


def _line(action: str, name: str, address: str, by: str, result: str, details: dict[str, object]) -> str:
    return audit_line(action, user=name, address=address, by=by, result=result, details=details)
