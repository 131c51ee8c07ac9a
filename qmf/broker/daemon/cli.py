"""`qmf-broker`: the broker as a process, from its start to SIGINT or SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import ssl
import sys
from collections.abc import Sequence

from qmf._event_loop import on_end_signals, run
from qmf.broker.daemon.options import options_parser
from qmf.broker.links.sasl import UsersError, read_users
from qmf.broker.nodes.settings import QueueLimits
from qmf.broker.server import Broker, ListenError

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
        broker = Broker(
            options.host,
            options.port,
            queues=options.queue,
            domains=options.domain,
            limits=QueueLimits(options.max_messages, options.max_bytes),
            ssl_context=_ssl_context(options.tls_cert, options.tls_key),
            users=read_users(options.users) if options.users else None,
            management=options.management_interval if options.management else None,
        )
        run(_serve(broker))
    except (ListenError, UsersError, _TlsError) as error:
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


class _TlsError(Exception):
    """The certificate or the key is not usable."""


def _ssl_context(certificate: str | None, key: str | None) -> ssl.SSLContext | None:
    if certificate is None:
        if key is not None:
            raise _TlsError("--tls-key needs --tls-cert")
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(certificate, key)
    except ssl.SSLError as error:
        reason = (error.reason or str(error)).replace("_", " ").lower()
        raise _TlsError(f"cannot use TLS certificate {certificate}: {reason}") from error
    except OSError as error:
        files = certificate if key is None else f"{certificate} or key {key}"
        raise _TlsError(f"cannot read TLS certificate {files}: {error.strerror}") from error
    return context
