"""What the tools have in common: options of the connection, how they end, and how they report errors."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import attrs

from qmf._completion import add_completion_option
from qmf._option_values import seconds_between
from qmf._standard_streams import until_unread
from qmf._version import __version__
from qmf.client import BrokerAgent
from qmf.connecting import (
    BrokerTarget,
    ConnectionContext,
    OptionError,
    TlsFiles,
    UrlAction,
    ask_on_terminal,
    config_path,
    context_of_environment,
    password_finder,
    read_contexts,
    token_file,
)
from qmf.errors import QmfError

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

#: Seconds to wait for the connection and for answers, by default.
TIMEOUT = 10
#: The limit when the user asks for none, in seconds.
NO_LIMIT = 10**6

ADDRESS_HELP = "broker: [user/password@]host[:port] or amqp[s]://[user:password@]host[:port]; default: localhost"


class ToolParser(argparse.ArgumentParser):
    """A parser that reports wrong usage in one line, and takes options by their whole names only."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog=prog, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """See `ArgumentParser`."""
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def add_connection_options(
    parser: argparse.ArgumentParser,
    *names: str,
    timeout_names: Sequence[str] = ("-t", "--timeout"),
    mechanism_names: Sequence[str] = ("--sasl-mechanism",),
) -> None:
    """Add the options for the broker's address, the time limit, SASL and TLS.

    Args:
        parser: of the tool.
        names: option names for the address, such as ``-b``; none for a tool that has it among its arguments, and sets
            it before `access_of`.
        timeout_names, mechanism_names: option names for the time limit, and for SASL mechanisms.
    """
    group = parser.add_argument_group("General Options")
    add = group.add_argument
    if names:
        add(*names, dest="broker", metavar="<address>", action=UrlAction, help=ADDRESS_HELP)
        add("--context", metavar="<name>", help="connect as this context of the settings file says (or QMF_CONTEXT)")
    else:
        parser.set_defaults(broker=None, context=None)
    add(
        *timeout_names,
        dest="timeout",
        type=seconds_between(0, NO_LIMIT),
        default=TIMEOUT,
        metavar="<secs>",
        help="seconds to wait for the connection and for each answer; 0 for no limit (%(default)s)",
    )
    add("--user", metavar="<name>", help="user to log in as; the password is asked for on a terminal")
    add("--password-file", metavar="<file>", type=Path, help="file with the password (or QMF_PASSWORD)")
    add("--token-file", metavar="<file>", type=Path, help="file with an access token to log in with")
    add("--keyring", action="store_true", help="take the password from the keyring of this user")
    add("--ask-password", action="store_true", help="ask for the password even if it is in the environment")
    add(
        *mechanism_names,
        dest="sasl_mechanism",
        metavar="<mech>",
        help="SASL mechanisms that may be used, e.g. PLAIN; by default the strongest that the broker offers",
    )
    add("--sasl-service-name", metavar="<name>", help="accepted for scripts; that of GSSAPI is amqp")
    add("--ssl-certificate", "--cert", metavar="<cert>", type=Path, help="certificate of the client in PEM, for amqps")
    add("--ssl-key", "--key", metavar="<key>", type=Path, help="its private key in PEM")
    add(
        "--ssl-trustfile",
        "--ca",
        metavar="<file>",
        type=Path,
        help="certificates in PEM that broker certificates are checked with",
    )
    add("--insecure", action="store_true", help="accept any certificate of the broker")
    add("--ha-admin", action="store_true", help="connect to a backup broker of a qpidd with high availability, too")
    add_completion_option(parser)
    add("--version", action="version", version=f"%(prog)s {__version__}")


def add_own_option(add: Callable[..., object]) -> None:
    """Add ``--all``; `add` is `add_argument` of a parser or of a group of options."""
    add(
        "--all", action="store_true", help="include what agents, consoles and tools create on the broker for themselves"
    )


def check_connection_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the program if options of the connection contradict each other."""
    if options.ssl_key and not options.ssl_certificate:
        parser.error("missing --ssl-certificate (required by --ssl-key)")


@attrs.frozen
class BrokerAccess:
    """Where a broker is, and how to connect to it.

    Attributes:
        address: of the broker, without a password that was found elsewhere.
        options: of `qmf.messaging.Connection`.
    """

    address: str
    options: Mapping[str, Any] = attrs.field(repr=False)

    def connect(self, timeout: float) -> BrokerAgent:
        """A connected client of the broker; errors as of `BrokerAgent.connect`."""
        return BrokerAgent.connect(self.address, timeout, **self.options)


def access_of(
    options: argparse.Namespace,
    *,
    environ: Mapping[str, str] = os.environ,
    ask: Callable[[str], str | None] = ask_on_terminal,
) -> BrokerAccess:
    """What the options of `add_connection_options` mean together.

    Without an address, `--context` and then the variable QMF_CONTEXT name a context; otherwise it is this machine. The
    default context of the settings file does not count, since scripts expect this machine. Options go first.

    Raises:
        OptionError: options that contradict each other, or a context with several brokers.
        QmfError: of `read_contexts`, `TlsFiles` and `password_finder`.
    """
    if options.broker is not None and options.context is not None:
        raise OptionError("--context and an address: give one of them")
    context = None
    if options.broker is None:
        context = context_of_environment(options.context, environ, lambda: read_contexts(config_path(environ)))
    address = str(options.broker or "localhost") if context is None else _only_url(context)
    tls = _tls(options, context)
    token = token_file(options.token_file, context, _warn)
    username, password = _login(options, context, address, environ, ask, with_token=token is not None)
    by_certificate = tls.cert is not None and username is None and token is None and "@" not in address
    given = {
        # A certificate says who the client is, where the broker wants to know.
        "sasl_mechanisms": options.sasl_mechanism or ("EXTERNAL ANONYMOUS" if by_certificate else None),
        "username": username,
        "password": password,
        "token": token,
        "ssl_context": tls.context() if tls.given else None,
        "client_properties": {"qpid.ha-admin": 1} if options.ha_admin else None,
    }
    return BrokerAccess(address, {name: value for name, value in given.items() if value})


def _only_url(context: ConnectionContext) -> str:
    if len(context.urls) != 1:
        raise OptionError(f"context {context.name} has {len(context.urls)} brokers: give the address of one")
    return context.urls[0]


def _tls(options: argparse.Namespace, context: ConnectionContext | None) -> TlsFiles:
    given = TlsFiles(
        ca=options.ssl_trustfile, cert=options.ssl_certificate, key=options.ssl_key, insecure=options.insecure
    )
    return given if context is None else context.tls.override(given)


def _login(
    options: argparse.Namespace,
    context: ConnectionContext | None,
    address: str,
    environ: Mapping[str, str],
    ask: Callable[[str], str | None],
    *,
    with_token: bool,
) -> tuple[str | None, str | None]:
    """User and password where the address does not have both; with a token no password is needed."""
    user = options.user or (context.user if context is not None else None)
    try:
        url = BrokerTarget.of(address).url
    except ValueError:
        if user is None:
            return None, None  # a form of the old tools, which the connection reads
        raise
    if url.username is not None and user not in (None, url.username):
        raise OptionError(f"two users: {url.username!r} in the address, and {user!r}")
    url = attrs.evolve(url, username=url.username or user)
    if url.username is None or url.password is not None:
        return None, None
    if with_token:
        return url.username, None
    passwords = password_finder(options, context, environ, ask, _warn)
    return url.username, passwords.find(url)


def _warn(text: str) -> None:
    print(f"Warning: {text}", file=sys.stderr)


@contextlib.contextmanager
def open_broker(access: BrokerAccess, timeout: float) -> Iterator[BrokerAgent]:
    """A broker, until the end of the block.

    Args:
        access: how to connect.
        timeout: seconds to wait for the connection and for each answer; 0 for no limit.

    Raises:
        QmfError: there is no connection, or the broker has no management.
    """
    agent = access.connect(timeout or NO_LIMIT)
    try:
        yield agent
    finally:
        with contextlib.suppress(QmfError):  # what was asked for is done
            agent.close()


def run_tool(run: Callable[[], int]) -> int:
    """Run a tool.

    Returns:
        its exit code; `FAILED` after an error, which is reported in one line, `INTERRUPTED` after Ctrl-C.
    """
    logging.getLogger("qmf").addHandler(logging.NullHandler())
    try:
        return until_unread(run)
    except KeyboardInterrupt:
        return INTERRUPTED
    except (QmfError, OSError) as error:
        print(f"Failed: {error}", file=sys.stderr)
        return FAILED
