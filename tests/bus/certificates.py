"""A certificate for brokers of tests, and consoles that trust it."""

from __future__ import annotations

import ssl
from pathlib import Path

TLS = Path(__file__).parent / "tls"


def server_tls() -> ssl.SSLContext:
    """Of a broker on 127.0.0.1 or localhost."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(TLS / "cert.pem", TLS / "key.pem")
    return context


def trusting() -> ssl.SSLContext:
    """Of a client that trusts this certificate alone."""
    return ssl.create_default_context(cafile=str(TLS / "cert.pem"))
