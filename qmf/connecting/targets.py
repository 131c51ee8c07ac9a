"""One broker with everything that is needed to connect to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from qmf.bus.url import BusUrl, parse_url
from qmf.connecting.contexts import ConnectionContext
from qmf.connecting.passwords import PasswordFinder
from qmf.connecting.secret_files import TokenFile
from qmf.connecting.tls import NO_FILES, TlsFiles
from qmf.errors import CallerError

if TYPE_CHECKING:
    from qmf.bus.base import Bus

#: The QMF domain where none is named.
DEFAULT_DOMAIN = "default"


class OptionError(CallerError):
    """Options for a connection that don't fit together."""


@attrs.frozen(kw_only=True)
class BrokerTarget:
    """A broker to connect to. `str` of it is the URL without password.

    Attributes:
        url: where it is; with user and password where one logs in.
        tls: files of TLS.
        domain: QMF domain.
        token: file with an access token to log in with; None without one.
    """

    url: BusUrl
    tls: TlsFiles = NO_FILES
    domain: str = DEFAULT_DOMAIN
    token: TokenFile | None = None

    @classmethod
    def of(cls, target: BrokerTarget | str) -> BrokerTarget:
        """A target itself, or that of a URL.

        Raises:
            UrlError: the URL is invalid.
        """
        return target if isinstance(target, BrokerTarget) else cls(url=parse_url(target))

    def __str__(self) -> str:
        return str(self.url)

    def make_bus(self) -> Bus:
        """A bus for this broker, not connected yet.

        Raises:
            TlsError: a file of TLS cannot be used.
        """
        from qmf.bus.client.amqp_bus import AmqpBus

        own = self.tls.cert is not None and self.url.username is None and self.token is None
        return AmqpBus(
            self.url,
            token=self.token,
            ssl_context=self.tls.context() if self.url.tls else None,
            # With a certificate of its own the client is known by that, where the broker wants to know it.
            mechanisms=("EXTERNAL", "ANONYMOUS") if own else None,
        )


def targets_of(
    urls: Sequence[str],
    *,
    user: str | None,
    tls: TlsFiles,
    domain: str | None,
    passwords: PasswordFinder,
    token: TokenFile | None = None,
) -> tuple[BrokerTarget, ...]:
    """The targets of some URLs, without repetitions.

    Args:
        urls: of the brokers.
        user: whom to log in as; None: the user of each URL, or nobody.
        tls: files of TLS, for all of them.
        domain: QMF domain; None for the default.
        passwords: finds the passwords that no URL has.
        token: file with an access token for all of them, in place of passwords; None without one.

    Raises:
        UrlError: a URL is invalid.
        OptionError: options of TLS without a URL that uses it, or two users.
        PasswordError: a user without password.
        TlsError: a file of TLS cannot be used.
    """
    parsed = [_with_user(parse_url(text), user) for text in dict.fromkeys(urls)]
    if tls.given:
        if not any(url.tls for url in parsed):
            options = " and ".join(tls.given)
            raise OptionError(f"{options}: only for TLS; write amqps:// in the URL of the broker")
        tls.context()  # now, not with the first attempt to connect: its errors are the user's
    return tuple(
        BrokerTarget(
            url=(
                attrs.evolve(url, password=passwords.find(url))
                if url.username and url.password is None and token is None
                else url
            ),
            tls=tls if url.tls else NO_FILES,
            domain=domain or DEFAULT_DOMAIN,
            token=token,
        )
        for url in parsed
    )


def targets_of_context(context: ConnectionContext, passwords: PasswordFinder) -> tuple[BrokerTarget, ...]:
    """The targets of a named context; errors as of `targets_of`."""
    return targets_of(
        context.urls,
        user=context.user,
        tls=context.tls,
        domain=context.domain,
        passwords=attrs.evolve(
            passwords,
            file=passwords.file or context.password_file,
            keyring=passwords.keyring or context.keyring,
        ),
        token=None if context.token_file is None else TokenFile(context.token_file),
    )


def _with_user(url: BusUrl, user: str | None) -> BusUrl:
    if user is None or url.username == user:
        return url
    if url.username is not None:
        raise OptionError(f"two users: {url.username!r} in the URL, and {user!r}")
    return attrs.evolve(url, username=user)
