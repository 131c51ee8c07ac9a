"""`qmf-web`: the web server as a program, from its start to SIGINT or SIGTERM.

Exit codes: 0 ended by a signal, 2 wrong arguments, no connection, or the address is taken.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import logging
import os
import signal
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qmf._audit_log import AuditFile
from qmf._event_loop import run
from qmf._hangup import hangup_handler
from qmf.connecting import BrokerTarget, read_connections
from qmf.errors import CallerError, QmfError
from qmf.web.arguments import parser
from qmf.web.scopes import Scope, parse_scopes, read_grants

if TYPE_CHECKING:
    from qmf.web.options import OidcOptions, WebOptions

_EXIT_ERROR = 2


class WebOptionError(CallerError):
    """Options of the command that don't fit together."""


def main(argv: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; `argv`: arguments without the program's name; None takes those of the process.

    Returns:
        the exit code.

    Raises:
        SystemExit: with 2 for wrong arguments, with 0 for `--help` and `--version`.
    """
    options = parser().parse_args(argv)
    try:
        if options.new_token is not None:
            return _print_token(options)
        with _logging(options):
            _serve(options)
    except QmfError as error:
        print(f"qmf-web: {error}", file=sys.stderr)
        return _EXIT_ERROR
    return 0


def _print_token(options: argparse.Namespace) -> int:
    # Imported here, as all that follows: --help needs none of it.
    from qmf.web.access.tokens import new_token

    end = None
    if options.days is not None:
        try:
            end = datetime.date.today() + datetime.timedelta(days=options.days)
        except OverflowError:
            raise WebOptionError(f"--days {options.days}: too many") from None
    secret, token = new_token(options.new_token, _scopes(options.scopes, "--scopes"), end)
    print(f"Token, shown only now: {secret}")
    print(f"Line for the file of --tokens: {token.line}")
    return 0


def _serve(options: argparse.Namespace) -> None:
    from qmf.web.application import create_application
    from qmf.web.server import ServerTls, listen, serve, url_of

    tls = None if options.tls_cert is None else ServerTls(cert=options.tls_cert, key=options.tls_key)
    if tls is None and options.tls_key is not None:
        raise WebOptionError("--tls-key needs --tls-cert")
    _check_protection(options)
    if tls is not None:
        tls.check()
    connections = read_connections(options, prog="qmf-web")
    with contextlib.ExitStack() as stack:
        listening = stack.enter_context(contextlib.closing(listen(options.host, options.port)))
        embedded = not connections.targets
        target = stack.enter_context(_embedded_broker(options.interval)) if embedded else connections.target
        port = listening.getsockname()[1]
        lake = options.lake or (None if connections.context is None else connections.context.lake)
        web_options = _web_options(options, target, port, lake)
        app = create_application(web_options)
        broker = f"an embedded broker at {target} with a host agent" if embedded else str(target)

        def on_ready() -> None:
            print(f"Serving {broker}. Open {url_of(listening, tls=tls is not None)}", flush=True)

        run(serve(app, listening, web_options, tls=tls, on_ready=on_ready))


def _web_options(options: argparse.Namespace, target: BrokerTarget, port: int, lake: str | None) -> WebOptions:
    from qmf.users.files import read_users
    from qmf.web.connections import most_connections, open_files
    from qmf.web.options import MetricsOptions, WebLimits, WebOptions

    users = None if options.users is None else read_users(options.users)
    return WebOptions(
        target=target,
        host=options.host,
        port=port,
        users=users,
        grants=_grants(options, users),
        oidc=_provider(options),
        tokens=options.tokens,
        rules=options.acl_file,
        tls=options.tls_cert is not None,
        hosts=tuple(options.server_name),
        trusted_proxies=tuple(options.trusted_proxy),
        timeout=options.timeout,
        push_dir=options.push_dir,
        push_to=None if options.push_to is None else tuple(options.push_to),
        lake=lake,
        report_time=options.report_time,
        limits=WebLimits(
            body=options.max_body,
            rate=options.max_rate,
            burst=max(1, round(2 * options.max_rate)),
            streams=options.max_streams,
            connections=most_connections(options.max_connections, open_files(options.max_connections)),
            address_connections=options.max_address_connections,
            header_time=options.header_time,
        ),
        metrics=MetricsOptions(
            classes=tuple(options.metrics),
            families=tuple(options.metrics_family),
            own=options.metrics_own,
            limit=options.metrics_limit,
            otlp=options.otlp,
            interval=options.metrics_interval,
        ),
    )


def _check_protection(options: argparse.Namespace) -> None:
    """Refuse to serve other machines without users and TLS, unless that was asked for.

    A proxy that is named has clients on other machines, and speaks TLS with them itself.
    """
    from qmf.connecting.loopback import is_loopback

    elsewhere = not is_loopback(options.host)
    missing = []
    if options.users is None and options.oidc is None and (elsewhere or options.trusted_proxy):
        missing.append("--users FILE or --oidc URL, so that anybody who reaches it could do everything")
    if options.tls_cert is None and elsewhere:
        missing.append("--tls-cert FILE, so that passwords and data could be read on the way")
    if not missing:
        return
    where = f"listening on {options.host or 'all addresses'}" if elsewhere else "serving a proxy"
    text = f"{where} without {', and without '.join(missing)}"
    if not options.allow_unprotected:
        raise WebOptionError(f"refused: {text}; --allow-unprotected does it nevertheless")
    _warn(text)


def _groups(path: Path | None) -> Mapping[str, Collection[str]]:
    """The users of the groups of a file of rules, without their realm."""
    if path is None:
        return {}
    from qmf.web.access.rules import read_rules

    return {name: {user.partition("@")[0] for user in users} for name, users in read_rules(path).groups.items()}


def _grants(options: argparse.Namespace, users: Mapping[str, str] | None) -> Mapping[str, frozenset[Scope]]:
    try:
        return read_grants(options.grant, users or {}, _groups(options.acl_file))
    except ValueError as error:
        raise WebOptionError(f"--grant {error}") from None


def _provider(options: argparse.Namespace) -> OidcOptions | None:
    """The identity provider; None without."""
    from qmf.connecting.secret_files import read_secret
    from qmf.web.options import OidcOptions

    _check_provider(options)
    if options.oidc is None:
        return None
    secret = options.oidc_secret_file
    return OidcOptions(
        issuer=options.oidc,
        client=options.oidc_client,
        secret=None if secret is None else read_secret(secret, "secret", warn=_warn),
        user_claim=options.oidc_user_claim,
        groups_claim=options.oidc_groups_claim,
        request=("profile",) if options.oidc_request is None else tuple(options.oidc_request),
        scopes=frozenset() if options.oidc_scopes is None else _scopes(options.oidc_scopes, "--oidc-scopes"),
        grants=dict(_group_grant(text) for text in options.oidc_grant),
    )


def _check_provider(options: argparse.Namespace) -> None:
    """Refuse options of an identity provider that don't fit together."""
    if options.oidc is None:
        others = ("client", "secret_file", "groups_claim", "request", "scopes", "grant")
        if without := [name for name in others if getattr(options, f"oidc_{name}")]:
            raise WebOptionError(f"--oidc-{without[0].replace('_', '-')} needs --oidc URL")
    elif options.oidc_client is None:
        raise WebOptionError("--oidc needs --oidc-client NAME")
    elif options.oidc_scopes is None and not options.oidc_grant:
        raise WebOptionError("--oidc needs --oidc-scopes SCOPES or --oidc-grant GROUP=SCOPES: nobody may do anything")
    elif options.oidc_grant and not options.oidc_groups_claim:
        raise WebOptionError("--oidc-grant needs --oidc-groups-claim CLAIM")


def _group_grant(text: str) -> tuple[str, frozenset[Scope]]:
    group, equals, scopes = text.rpartition("=")
    if not equals or not group:
        raise WebOptionError(f"--oidc-grant {text}: expected GROUP=SCOPES")
    return group, _scopes(scopes, f"--oidc-grant {text}")


def _warn(text: str) -> None:
    print(f"qmf-web: warning: {text}", file=sys.stderr)


def _scopes(text: str, option: str) -> frozenset[Scope]:
    try:
        return parse_scopes(text)
    except ValueError as error:
        raise WebOptionError(f"{option}: {error}") from None


@contextlib.contextmanager
def _embedded_broker(interval: float) -> Iterator[BrokerTarget]:
    """An embedded broker with a host agent, until the end of the block."""
    from qmf.broker import EmbeddedBroker
    from qmf.hostagent import EmbeddedHostAgent

    broker = EmbeddedBroker(host="127.0.0.1", port=0, management=interval)
    with broker, EmbeddedHostAgent(broker.url, interval):
        yield BrokerTarget.of(broker.url)


@contextlib.contextmanager
def _logging(options: argparse.Namespace) -> Iterator[None]:
    """Log to standard error, and calls and refusals to their file."""
    level = logging.DEBUG if options.verbose else logging.WARNING
    form = "%(asctime)s %(levelname)s %(name)s: %(message)s"
    logging.basicConfig(level=level, format=form)
    audit = logging.getLogger("qmf.web.audit")
    audit.setLevel(logging.INFO)
    for name in ("uvicorn", "asyncio"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if options.audit is None:
        yield
        return
    try:
        handler = AuditFile(options.audit)
    except OSError as error:
        raise WebOptionError(f"--audit {options.audit}: {error.strerror or error}") from error
    audit.addHandler(handler)
    audit.propagate = False
    handle = hangup_handler(lambda: _reopen(handler), lambda: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.signal(signal.SIGHUP, lambda *_: handle())
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
        audit.removeHandler(handler)
        audit.propagate = True
        handler.close()


def _reopen(handler: AuditFile) -> None:
    """Go on in a new file, after somebody has moved the old one."""
    try:
        handler.reopen()
    except OSError as error:
        logging.getLogger("qmf.web").error("SIGHUP: the audit log goes on as before: %s", error)
