"""`qmf-broker`: the broker as a program."""

from __future__ import annotations

import argparse
import asyncio
import logging
import math
import signal
import ssl
import sys
from collections.abc import Sequence

from qmf._version import __version__
from qmf.broker.links.sasl import UsersError, read_users
from qmf.broker.nodes.queues import Limits
from qmf.broker.server import Broker, ListenError
from qmf.bus.url import AMQP_PORT

#: Exit code for a start that failed through what the user asked for, as argparse has it.
USAGE = 2
#: Seconds that the management model can name as its interval.
MAX_INTERVAL = 65_535


def main(argv: Sequence[str] | None = None) -> int:
    """Run the broker until SIGINT or SIGTERM.

    Args:
        argv: arguments without the program's name; by default those of the process.

    Returns:
        0 after a clean end, 2 when it could not start; the reason is on standard error then.
    """
    options = _parser().parse_args(argv)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    try:
        tls = _tls(options.tls_cert, options.tls_key)
        users = read_users(options.users) if options.users else None
        broker = Broker(
            options.host,
            options.port,
            queues=options.queue,
            domains=options.domain,
            limits=Limits(options.max_messages, options.max_bytes),
            ssl_context=tls,
            users=users,
            management=options.management_interval if options.management else None,
        )
        asyncio.run(_serve(broker))
    except (ListenError, UsersError, _TlsError) as error:
        print(f"qmf-broker: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return 0  # before the handlers were in place
    return 0


async def _serve(broker: Broker) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        async with broker:
            print(f"Listening on {broker.url}", flush=True)
            await stop.wait()
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


def _parser() -> argparse.ArgumentParser:
    limits = Limits()
    parser = argparse.ArgumentParser(
        prog="qmf-broker",
        description="A small AMQP 1.0 broker with the exchanges that QMF needs. Stop it with Ctrl-C.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s: this machine only)")
    parser.add_argument("--port", type=_port, default=AMQP_PORT, help="TCP port; 0 picks a free one (%(default)s)")
    parser.add_argument("--queue", action="append", default=[], metavar="NAME", help="have a queue of this name")
    parser.add_argument(
        "--domain", action="append", default=[], metavar="NAME", help="have the exchanges of this QMF domain"
    )
    parser.add_argument(
        "--max-messages", type=_positive, default=limits.count, metavar="N", help="messages per queue (%(default)s)"
    )
    parser.add_argument(
        "--max-bytes", type=_positive, default=limits.size, metavar="N", help="bytes per queue (%(default)s)"
    )
    parser.add_argument("--users", metavar="FILE", help="let in only these users: lines name:password, SASL PLAIN")
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain in PEM: speak TLS only")
    parser.add_argument("--tls-key", metavar="FILE", help="private key in PEM; by default in the certificate's file")
    parser.add_argument(
        "--no-management", dest="management", action="store_false", help="have no QMF agent that shows the broker"
    )
    parser.add_argument(
        "--management-interval",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="time between what that agent publishes (%(default)g)",
    )
    parser.add_argument("--verbose", action="store_true", help="log what happens to standard error")
    parser.add_argument("--version", action="version", version=f"qmf-broker {__version__}")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= MAX_INTERVAL:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, up to {MAX_INTERVAL}")
    return seconds


class _TlsError(Exception):
    """Certificate or key cannot be used."""


def _tls(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        if key is not None:
            raise _TlsError("--tls-key needs --tls-cert")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        words = (error.reason or str(error)).replace("_", " ").lower()
        raise _TlsError(f"cannot use TLS certificate {certificate}: {words}") from error
    except OSError as error:
        files = certificate if key is None else f"{certificate} or key {key}"
        raise _TlsError(f"cannot read TLS certificate {files}: {error.strerror}") from error
    return context
