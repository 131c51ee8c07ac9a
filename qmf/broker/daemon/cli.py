"""`qmf-broker`: the broker as a process, from its start to SIGINT or SIGTERM."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from qmf._event_loop import on_end_signals, on_signals, run
from qmf._garbage import collecting_seldom
from qmf._hangup import hangup_handler
from qmf.acl.reader import AclError
from qmf.broker.access.control import AclFileError, FileAccessControl
from qmf.broker.access.recording import AccessRecord
from qmf.broker.audit import BrokerAudit
from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.daemon.background import Ready, start_in_background
from qmf.broker.daemon.config_file import ConfigFileError
from qmf.broker.daemon.foreign_options import check_foreign_options
from qmf.broker.daemon.interfaces import InterfaceError, address_of
from qmf.broker.daemon.log_options import log_output, log_writer
from qmf.broker.daemon.log_output import LogOutputError, LogWriter
from qmf.broker.daemon.log_rules import NOTICE, LogRuleError
from qmf.broker.daemon.options import parse
from qmf.broker.daemon.pid_files import DaemonError, hold, port_file, running, stop
from qmf.broker.daemon.process_control import DaemonControl
from qmf.broker.daemon.relay_options import relay_options
from qmf.broker.daemon.reloading import Reloader
from qmf.broker.daemon.security import (
    SecurityOptionError,
    check_security,
    kerberos_service,
    open_audit,
    print_hash,
    security_warnings,
    server_tls,
    tls_port,
    token_verifier,
)
from qmf.broker.daemon.store_commands import run_store_command
from qmf.broker.daemon.tls import BrokerTls
from qmf.broker.listener import ListenError
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.nodes.settings import QueueLimits
from qmf.broker.protocols.amqp.options import AmqpOptions
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.broker.server import Broker
from qmf.connecting.tls import TlsError
from qmf.errors import CallerError
from qmf.users.files import read_users
from qmf.users.tokens import TokenVerifier
from qmf.users.verifiers import UsersError

#: Exit code when the broker could not start because of its options; the one of argparse.
USAGE = 2
#: Exit code of `--check`, `--quit` and `--daemon` when there is no broker.
NOT_RUNNING = 1

log = logging.getLogger("qmf.broker")


class _OptionsError(Exception):
    """Options are wrong, or contradict each other."""


#: What ends the program with one line.
_ERRORS = (
    AclError,
    AclFileError,
    NotStored,
    ConfigFileError,
    InterfaceError,
    ListenError,
    LogOutputError,
    LogRuleError,
    TlsError,
    UsersError,
    SecurityOptionError,
    CallerError,
    _OptionsError,
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the broker until SIGINT or SIGTERM, or in the background; or check or stop the one in the background.

    Args:
        argv: arguments without the program's name; by default those of the process.

    Returns:
        0 after a clean end, and when a broker in the background was started, found or stopped; 1 when there is none
        or it could not be started or stopped; 2 when the broker could not start: the reason is on standard error then.
    """
    try:
        options = parse(argv)
        errors, warnings = check_foreign_options(options)
        if errors:
            raise _OptionsError(errors[0])
        if options.hash_password is not None:
            print_hash(options.hash_password)
            return 0
        if options.check_store or options.salvage_store is not None:
            if options.data_dir is None:
                raise _OptionsError("--check-store and --salvage-store need --data-dir")
            return run_store_command(options.data_dir, options.salvage_store)
        if options.check or options.quit or options.kill:
            return _control(options)
        return _start(options, warnings)
    except _ERRORS as error:
        print(f"qmf-broker: {error}", file=sys.stderr)
        return USAGE
    except DaemonError as error:
        print(f"qmf-broker: {error}", file=sys.stderr)
        return NOT_RUNNING
    except KeyboardInterrupt:
        return 0  # before the signal handlers were in place


def _control(options: argparse.Namespace) -> int:
    """`--check`, `--quit` and `--kill`."""
    path = options.pidfile or port_file(options.pid_dir, options.port)
    if options.check:
        pid = running(path)
        if pid is None:
            return NOT_RUNNING
        print(pid)
        return 0
    if stop(path, signal.SIGKILL if options.kill else signal.SIGINT, options.wait):
        return 0
    raise DaemonError(f"no broker is running: {path}")


def _start(options: argparse.Namespace, warnings: Sequence[str]) -> int:
    listening = _listening(options.socket_fd)
    host = address_of(options.host) if listening is None else str(listening.getsockname()[0])
    try:
        check_security(options, host)
    except SecurityOptionError:
        if listening is not None:
            listening.close()
        raise
    writer, output = log_writer(options), log_output(options)
    users = read_users(options.users) if options.users else None
    tls = server_tls(options)
    tokens = token_verifier(options)
    access = _access(options)
    audit = None if options.audit_log is None else open_audit(options.audit_log)
    broker = _broker(options, host, listening, writer, users, tokens, tls, access, audited=audit is not None)
    reloader = Reloader(broker, writer, Path(options.users) if options.users else None, tls, access, audit)
    warnings = [*warnings, *security_warnings(host, options, users=users, tls=tls)]
    if options.daemon and not output.files and not output.syslog:
        warnings.append("there is no syslog, so nothing is logged; use --log-to-file")
    for warning in warnings:
        print(f"qmf-broker: warning: {warning}", file=sys.stderr)
    if not options.daemon:
        with writer.writing(output):
            run(_serve(broker, options, reloader, None, logs=bool(output.files or output.syslog)))
        return 0

    def run_child(ready: Ready) -> int:
        with writer.writing(output):
            for warning in warnings:
                log.warning("%s", warning)
            run(_serve(broker, options, reloader, ready, logs=True))
        return 0

    port = start_in_background(run_child, options.wait, options.close_fd)
    if options.port == 0:
        print(port)
    return 0


async def _serve(
    broker: Broker, options: argparse.Namespace, reloader: Reloader, ready: Ready | None, *, logs: bool
) -> None:
    """Run the broker until it is to end; with `logs`, the log says when it began and ended."""
    stop_event = asyncio.Event()
    if isinstance(broker.process, DaemonControl):
        broker.process.on_shutdown = stop_event.set
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    on_hangup = hangup_handler(reloader.reload, stop_event.set)
    with (
        on_end_signals(stop_event.set),
        on_signals((signal.SIGHUP,), on_hangup),
        contextlib.ExitStack() as files,
        collecting_seldom(),  # what a client has stays as long as the client, and is gone with it
    ):
        async with broker:
            if options.pidfile is not None:
                files.enter_context(hold(options.pidfile))
            if ready is not None:
                files.enter_context(hold(port_file(options.pid_dir, broker.port)))
                ready(str(broker.port))
            else:
                print(f"Listening on {' and '.join(broker.urls)}", flush=True)
            if logs:
                log.log(NOTICE, "started as process %d on %s", os.getpid(), broker.url)
            await stop_event.wait()
    if logs:
        log.log(NOTICE, "ended")


def _broker(
    options: argparse.Namespace,
    host: str,
    listening: socket.socket | None,
    writer: LogWriter,
    users: Mapping[str, str] | None,
    tokens: TokenVerifier | None,
    tls: BrokerTls | None,
    access: FileAccessControl | None,
    *,
    audited: bool,
) -> Broker:
    manages = options.management if options.mgmt_enable is None else options.mgmt_enable
    return Broker(
        host,
        options.port,
        queues=options.queue,
        domains=options.domain,
        limits=QueueLimits(options.max_messages, options.max_bytes or None),
        ssl_context=None if tls is None else tls.context,
        tls_port=None if options.require_encryption else tls_port(options),
        server_certificate=None if tls is None else lambda: tls.certificate,
        users=users,
        tokens=tokens,
        certificates=tls is not None and tls.options.client_ca is not None,
        kerberos=kerberos_service(options),
        mechanisms=None if options.sasl_mechanisms is None else options.sasl_mechanisms.replace(",", " ").split(),
        management=options.management_interval if manages else None,
        data_dir=options.data_dir,
        publishes=options.mgmt_publish and options.mgmt_qmf2,
        open_timeout=options.max_negotiate_time / 1000,
        backlog=options.connection_backlog,
        connection_limits=ConnectionLimits(
            options.max_connections,
            options.connection_limit_per_ip,
            options.connection_limit_per_user if access is None else 0,  # it has quotas of single users as well
            options.handshake_limit_per_ip,
        ),
        amqp=AmqpOptions(
            max_message=options.max_message_size, max_sessions=options.max_sessions, max_links=options.max_links
        ),
        mqtt=_mqtt(options),
        stomp=StompOptions(
            port=options.stomp_port, max_frame=options.stomp_max_frame_size, heartbeat=options.stomp_heartbeat
        ),
        relay=relay_options(options),
        ws_port=options.ws_port,
        ws_origins=options.ws_origin,
        total_limits=_total_limits(options.max_total_messages, options.max_total_bytes),
        expiry_interval=options.queue_purge_interval,
        listening=listening,
        timestamps=options.enable_timestamp,
        queue_patterns=[item.pattern for item in options.queue_patterns],
        topic_patterns=[item.pattern for item in options.topic_patterns],
        process=DaemonControl(writer),
        access=access,
        audit=BrokerAudit() if audited else None,
    )


def _access(options: argparse.Namespace) -> FileAccessControl | None:
    if options.acl_file is None:
        if options.max_queues_per_user:
            raise _OptionsError("--max-queues-per-user needs --acl-file")
        if options.acl_record is not None:
            raise _OptionsError("--acl-record needs --acl-file: an empty file will do")
        return None
    return FileAccessControl(
        options.acl_file,
        realm=options.realm,
        connections_per_user=options.connection_limit_per_user,
        queues_per_user=options.max_queues_per_user,
        record=None if options.acl_record is None else AccessRecord(options.acl_record),
    )


def _mqtt(options: argparse.Namespace) -> MqttOptions:
    return MqttOptions(
        port=options.mqtt_port,
        tls_port=None if options.require_encryption and options.mqtt_port is not None else options.mqtt_tls_port,
        max_packet=options.mqtt_max_packet_size,
        receive_maximum=options.mqtt_receive_maximum,
        topic_aliases=options.mqtt_topic_aliases,
        max_keep_alive=options.mqtt_max_keep_alive,
        max_session_expiry=options.mqtt_max_session_expiry,
        max_subscriptions=options.mqtt_max_subscriptions,
        sys_interval=options.mqtt_sys_interval,
    )


def _total_limits(count: int, size: int) -> QueueLimits | None:
    return QueueLimits(count or None, size or None) if count or size else None


def _listening(descriptor: int | None) -> socket.socket | None:
    if descriptor is None:
        return None
    try:
        found = socket.socket(fileno=descriptor)
    except OSError as error:
        raise _OptionsError(f"--socket-fd {descriptor}: {error.strerror}") from error
    found.setblocking(False)
    return found
