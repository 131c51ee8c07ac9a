"""What a client's connection sends to its broker, and accepts from it; and how it logs in."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from qmf._version import __version__
from qmf.bus.client.failures import NetworkFailure
from qmf.bus.engine.values import MAX_MESSAGE, ConnectionSettings
from qmf.bus.url import BusUrl
from qmf.errors import CallerError
from qmf.sasl.client import SaslCredentials

#: An access token, or what returns the one to log in with now; it may read a file, and raise CallerError or OSError.
AccessToken = str | Callable[[], str]


@attrs.frozen
class ClientSettings:
    """The settings of a network connection.

    Attributes:
        engine: of its engine.
        credentials: what it logs in with.
        mechanisms: names of SASL mechanisms that may be used; None for the strongest that the broker offers.
    """

    engine: ConnectionSettings
    credentials: SaslCredentials
    mechanisms: tuple[str, ...] | None = None


def client_settings(
    url: BusUrl,
    container: str,
    *,
    mechanisms: Sequence[str] | None,
    heartbeat: float | None,
    max_message: int = MAX_MESSAGE,
    token: AccessToken | None = None,
    properties: Mapping[str, str | int],
) -> ClientSettings:
    """The settings of a network connection.

    Args:
        url: of the broker, with the user to log in as.
        container: our container id.
        mechanisms: names of SASL mechanisms that may be used; None for the strongest that the broker offers. A user
            becomes anonymous, and a password is sent where others could read it, only if that is named.
        heartbeat: seconds between the heartbeats that are asked of the broker; it counts as lost after twice that.
            None: never.
        max_message: bytes of the largest message that is accepted.
        token: access token to log in with; None for none.
        properties: of the connection, which brokers show, besides those that all clients have.

    Raises:
        NetworkFailure: there is no token now.
    """
    try:
        found = token() if callable(token) else token
    except (CallerError, OSError) as error:
        raise NetworkFailure(url, f"no access token: {error}") from error
    engine = ConnectionSettings(
        container=container,
        hostname=url.host,
        idle_timeout=None if heartbeat is None else 2 * heartbeat,
        max_message=max_message,
        properties={**_client_properties(), **properties},
    )
    return ClientSettings(
        engine,
        SaslCredentials(url.username, url.password, found, url.host),
        None if mechanisms is None else tuple(mechanisms),
    )


def _client_properties() -> dict[str, str | int]:
    """What brokers show of a connection; the names are qpidd's."""
    return {
        "product": "qmf",
        "version": __version__,
        "qpid.client_process": Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python",
        "qpid.client_pid": os.getpid(),
        "qpid.client_ppid": os.getppid(),
    }
