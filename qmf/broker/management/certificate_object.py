"""The broker's certificate as a managed object of the package ``qmf.security``, and the event that it ends soon."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from qmf.agent import Agent
from qmf.broker.certificates import CertificateFacts
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import lstr, sstr
from qmf.models.security import agent as model

log = logging.getLogger("qmf.broker")

#: What agents of a broker with TLS publish.
CLASSES = (model.Certificate,)
EVENTS = (model.CertificateExpires,)

_DAY = 24 * 60 * 60
#: Seconds before the end of a certificate at which an event is raised; 0 when it has ended.
WARNINGS = (0, _DAY, 7 * _DAY, 30 * _DAY)
_NS = 1_000_000_000
_LAST = (1 << 63) - 1


class ManagedCertificate(model.Certificate, SampledObject):
    """The certificate that the broker uses now."""

    __slots__ = ("_agent", "_clock", "_current", "_der", "_end", "_warned")

    def __init__(self, agent: Agent, current: Callable[[], bytes], clock: Callable[[], float] = time.time) -> None:
        """Make the object of the broker's certificate.

        Args:
            current: returns the certificate as DER; it may be another one after the files were read again.
            clock: returns the seconds since 1970.
        """
        super().__init__(name="server")
        self._agent = agent
        self._current = current
        self._clock = clock
        self._der = b""
        self._end = 0.0
        #: The warning of which an event was raised for this certificate; None for none.
        self._warned: int | None = None

    def sample(self) -> None:
        if (der := self._current()) != self._der:
            self._read(der)
        if not self._end:
            return
        self.remaining = round(self._end - self._clock())
        due = next((limit for limit in WARNINGS if self.remaining <= limit), None)
        if due is not None and (self._warned is None or due < self._warned):
            if self._warned is not None:  # the first one was logged when the files were read
                log.warning("the certificate %s ends in %d s; renew it, then send SIGHUP", self.subject, self.remaining)
            self._warned = due
            self._agent.raise_event(
                model.CertificateExpires(
                    subject=self.subject, serial=self.serial, notAfter=self.notAfter, remaining=self.remaining
                )
            )

    def _read(self, der: bytes) -> None:
        self._der, self._warned = der, None
        facts = CertificateFacts.of(der)
        if facts is None:
            return
        self._end = facts.end.timestamp()
        self.subject, self.issuer = lstr(facts.subject), lstr(facts.issuer)
        self.serial = sstr(f"{facts.serial:x}")
        # The schema's times end in the year 2262.
        self.notBefore, self.notAfter = (
            min(round(moment) * _NS, _LAST) for moment in (facts.begin.timestamp(), self._end)
        )
