"""What a certificate says, read by the library asn1crypto (extra `sasl`)."""

from __future__ import annotations

import datetime
import importlib
import importlib.util
from typing import Any, Self

import attrs


@attrs.frozen
class CertificateFacts:
    """What a certificate says.

    Attributes:
        subject, issuer: whom it identifies, and who has signed it, in the notation of LDAP.
        serial: number with that authority.
        begin, end: times between which it is valid, in UTC.
    """

    subject: str
    issuer: str
    serial: int
    begin: datetime.datetime
    end: datetime.datetime

    @classmethod
    def of(cls, der: bytes) -> Self | None:
        """Those of a certificate as DER; None if the library that reads it is missing."""
        if importlib.util.find_spec("asn1crypto") is None:
            return None
        x509: Any = importlib.import_module("asn1crypto.x509")
        found = x509.Certificate.load(der)
        return cls(
            found.subject.human_friendly,
            found.issuer.human_friendly,
            found.serial_number,
            found.not_valid_before,
            found.not_valid_after,
        )
