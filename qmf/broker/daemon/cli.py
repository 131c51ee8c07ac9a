"""`qmf-broker`: the broker as a process, from its start to SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from collections.abc import Sequence
from pathlib import Path

from qmf._event_loop import on_end_signals, run
from qmf.broker.daemon.options import options_parser
from qmf.broker.daemon.security import print_hash, warnings
from qmf.broker.links.users import UsersError, read_users
from qmf.broker.nodes.settings import QueueLimits
from qmf.broker.server import Broker, ListenError
from qmf.connecting.tls import TlsError, load_own_certificate

#: Exit code when the broker could not start because of its options; the one of argparse.
USAGE = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the broker until SIGINT or SIGTERM.

    Args:
        argv: arguments without the program's name; by default those of the process.

    Returns:
        0 after a clean end; 2 when it could not start: the reason is on standard error then.
    """
    options = options_parser().parse_args(argv)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    try:
        if options.hash_password is not None:
            print_hash(options.hash_password)
            return 0
        users = read_users(options.users) if options.users else None
        for text in warnings(options.host, users=users, tls=options.tls_cert is not None, file=options.users):
            print(f"qmf-broker: warning: {text}", file=sys.stderr)
        broker = Broker(
            options.host,
            options.port,
            queues=options.queue,
            domains=options.domain,
            limits=QueueLimits(options.max_messages, options.max_bytes),
            ssl_context=_ssl_context(options.tls_cert, options.tls_key),
            users=users,
            management=options.management_interval if options.management else None,
        )
        run(_serve(broker))
    except (ListenError, UsersError, TlsError) as error:
        print(f"qmf-broker: {error}", file=sys.stderr)
        return USAGE
    except KeyboardInterrupt:
        return 0  # before the signal handlers were in place
    return 0


async def _serve(broker: Broker) -> None:
    stop = asyncio.Event()
    with on_end_signals(stop.set):
        async with broker:
            print(f"Listening on {broker.url}", flush=True)
            await stop.wait()


def _ssl_context(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        if key is not None:
            raise TlsError("--tls-key needs --tls-cert")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    load_own_certificate(context, Path(certificate), None if key is None else Path(key))
    return context
