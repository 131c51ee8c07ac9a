"""The log of calls, changes, logins and refusals: one JSON object per line, to the logger ``qmf.web.audit``.

JSON, because names and texts come from clients: none can end a line or invent a field.
"""

from __future__ import annotations

import json
import logging

from qmf.web.access.caller import Caller

log = logging.getLogger("qmf.web.audit")


class AuditLog:
    """Writes the records."""

    def allowed(self, caller: Caller, action: str, **details: object) -> None:
        """Something was done for a caller: a call, a change of properties, a login.

        Args:
            caller: who asked.
            action: in a word, e.g. ``call``.
            details: more fields; no passwords and no tokens.
        """
        log.info("%s", _line(action, caller.name, caller.address, caller.proof.value, details))

    def refused(self, action: str, *, name: str, address: str, reason: str, **details: object) -> None:
        """Something was refused.

        Args:
            action: what was asked for.
            name: who asked, as known so far; may be empty.
            address: of the client.
            reason: why it was refused, in one line.
            details: more fields.
        """
        log.warning("%s", _line(action, name, address, "refused", {"reason": reason, **details}))


def _line(action: str, name: str, address: str, outcome: str, details: dict[str, object]) -> str:
    return json.dumps({"action": action, "user": name, "address": address, "by": outcome, **details}, default=str)
