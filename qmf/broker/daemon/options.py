"""The command line of `qmf-broker`: its own options, and those of qpidd under their names."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from qmf._completion import add_completion_option
from qmf._option_values import count, port, regular_expression, whole_number
from qmf._version import __version__
from qmf.broker.access.control import REALM
from qmf.broker.daemon.config_file import config_arguments
from qmf.broker.daemon.foreign_options import add_foreign_options
from qmf.broker.daemon.pid_files import default_folder
from qmf.broker.daemon.protocol_options import add_protocol_options
from qmf.broker.daemon.relay_options import add_relay_options
from qmf.broker.daemon.tls import TLS_VERSIONS
from qmf.broker.daemon.values import duration, yes_or_no
from qmf.broker.handshakes import HANDSHAKES
from qmf.broker.listener import BACKLOG, OPEN_TIMEOUT
from qmf.broker.nodes.settings import QueueLimits
from qmf.broker.options import EXPIRY_INTERVAL
from qmf.broker.protocols.amqp.options import AmqpOptions
from qmf.bus.url import AMQP_PORT

#: What is logged unless rules are given.
DEFAULT_RULE = "notice+"


def options_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="qmf-broker",
        # All of them would hide the line with the error.
        usage="qmf-broker [options]",
        description="An AMQP 1.0 broker with the queues, exchanges and management of Apache qpidd. Ctrl-C ends it.",
        epilog="Options of Apache qpidd have its names and meanings; yes|no may be written true|false or 1|0 as well.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--host", "--interface", default="127.0.0.1", help="address or interface to listen on (%(default)s)"
    )
    parser.add_argument("-p", "--port", type=port, default=AMQP_PORT, help="TCP port; 0 for any free one (%(default)s)")
    parser.add_argument("--queue", action="append", default=[], metavar="NAME", help="create a queue of this name")
    parser.add_argument(
        "--domain", action="append", default=[], metavar="NAME", help="create the exchanges of this QMF domain"
    )
    _add_limits(parser)
    parser.add_argument("--users", metavar="FILE", help="allow these users: the file is kept by qmf-users")
    parser.add_argument(
        "--hash-password",
        nargs="?",
        const="",
        metavar="NAME",
        help="ask for a password, print its line for --users, and end",
    )
    parser.add_argument(
        "--no-management", dest="management", action="store_false", help="run without the broker's own QMF agent"
    )
    parser.add_argument(
        "--management-interval",
        "--mgmt-pub-interval",
        type=duration,
        default=10.0,
        metavar="SECONDS",
        help="time between two publications of that agent (%(default)g)",
    )
    _add_tls_options(parser)
    _add_login_options(parser)
    add_protocol_options(parser)
    _add_store_options(parser)
    add_relay_options(parser)
    add_completion_option(parser)
    parser.add_argument("--verbose", action="store_true", help="log what happens: the same as --log-enable debug+")
    parser.add_argument("-v", "--version", action="version", version=f"qmf-broker {__version__}")
    _add_broker_options(parser)
    _add_access_options(parser)
    _add_log_options(parser)
    _add_daemon_options(parser)
    add_foreign_options(parser)
    return parser


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options; those of a configuration file where the command line has none.

    Raises:
        ConfigError: the configuration file cannot be used.
    """
    import sys

    words = sys.argv[1:] if argv is None else list(argv)
    parser = options_parser()
    options = parser.parse_args(words)
    if options.config is not None:
        # What comes later replaces what was given before.
        options = parser.parse_args([*config_arguments(options.config, parser), *words])
    return options


def _add_limits(parser: argparse.ArgumentParser) -> None:
    limits, amqp = QueueLimits(), AmqpOptions()
    parser.add_argument(
        "--max-messages", type=count, default=limits.count, metavar="N", help="messages per queue (any number)"
    )
    parser.add_argument(
        "--max-bytes",
        "--default-queue-limit",
        type=whole_number,
        default=limits.size,
        metavar="N",
        help="bytes per queue; 0 for no limit (%(default)s)",
    )

    parser.add_argument(
        "--handshake-limit-per-ip",
        type=whole_number,
        default=HANDSHAKES,
        metavar="N",
        help="clients of one host that log in at a time, while others wait; 0 for no limit (%(default)s)",
    )
    parser.add_argument(
        "--max-total-messages",
        type=whole_number,
        default=0,
        metavar="N",
        help="messages in all queues together, but for those that flow to disk; 0 for no limit (0)",
    )
    parser.add_argument(
        "--max-total-bytes", type=whole_number, default=0, metavar="N", help="the same in bytes; 0 for no limit (0)"
    )
    parser.add_argument(
        "--max-message-size",
        type=count,
        default=amqp.max_message,
        metavar="BYTES",
        help="the largest message that is taken (%(default)s)",
    )
    parser.add_argument(
        "--max-sessions",
        type=count,
        default=amqp.max_sessions,
        metavar="N",
        help="sessions of one connection (%(default)s)",
    )
    parser.add_argument(
        "--max-links",
        type=count,
        default=amqp.max_links,
        metavar="N",
        help="links of one connection (%(default)s)",
    )


def _add_store_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--data-dir",
        "--store-dir",
        "--store-directory",
        type=Path,
        metavar="DIR",
        help="keep durable queues, exchanges and messages in this folder; without it, nothing is kept",
    )
    parser.add_argument(
        "--no-data-dir", dest="data_dir", action="store_const", const=None, help="keep nothing (the default)"
    )
    parser.add_argument(
        "--check-store", action="store_true", help="read the whole store of --data-dir, report what it holds, and end"
    )
    parser.add_argument(
        "--salvage-store",
        type=Path,
        metavar="NEW-DIR",
        help="copy what can be read of a damaged store in --data-dir to a new folder, and end",
    )


def _add_broker_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("options of qpidd: broker")
    add = group.add_argument
    add("--config", metavar="FILE", help="read options from this file: lines name=value")
    add(
        "--connection-backlog",
        type=count,
        default=BACKLOG,
        metavar="N",
        help="connections that may wait to be accepted (%(default)s)",
    )
    add("--max-connections", type=whole_number, default=0, metavar="N", help="connections at most; 0 for no limit (0)")
    add("--connection-limit-per-ip", type=whole_number, default=0, metavar="N", help="the same for one host")
    add("--connection-limit-per-user", type=whole_number, default=0, metavar="N", help="the same for one user")
    add(
        "--max-negotiate-time",
        type=count,
        default=round(OPEN_TIMEOUT * 1000),
        metavar="MILLISECONDS",
        help="time that a client has for its handshakes (%(default)s)",
    )
    _add_management_options(group)
    add(
        "--queue-purge-interval",
        type=duration,
        default=EXPIRY_INTERVAL,
        metavar="SECONDS",
        help="time between removals of expired messages (%(default)g)",
    )
    for name, what in (("queue", "queues"), ("topic", "exchanges")):
        add(
            f"--{name}-patterns",
            action="append",
            type=regular_expression,
            default=[],
            metavar="PATTERN",
            help=f"addresses that match this regular expression create {what} when they are used; several times",
        )
    add(
        "--enable-timestamp",
        type=yes_or_no,
        default=False,
        metavar="yes|no",
        help="messages that come get the time as the annotation x-opt-ingress-timestamp (no)",
    )


def _add_access_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("options of qpidd: access").add_argument
    add(
        "--auth",
        type=yes_or_no,
        metavar="yes|no",
        help="yes: insist on --users; no: let everybody in, also from other machines (as --users says)",
    )
    add(
        "--realm",
        default=REALM,
        metavar="REALM",
        help="of users whose names have none, in the file of --acl-file (%(default)s)",
    )
    add(
        "--acl-file",
        type=Path,
        metavar="FILE",
        help="rules that decide who may do what (qmf-acl checks them); without it, everybody who may log in may do all",
    )
    add(
        "--audit-log",
        type=Path,
        metavar="FILE",
        help="append who did what, and what was refused, to this file, as JSON lines; SIGHUP opens it again",
    )
    add(
        "--acl-record",
        type=Path,
        metavar="FILE",
        help="a dry run of --acl-file: append what clients do to this file, report what the rules would decide, and "
        "allow everything (qmf-acl propose makes rules from the file)",
    )
    add(
        "--max-queues-per-user",
        type=whole_number,
        default=0,
        metavar="N",
        help="queues that a user may create, with --acl-file; 0 for no limit (0)",
    )
    add(
        "--require-encryption",
        action="store_true",
        help="TLS alone, which needs --tls-cert: with --tls-port, the port without TLS is not opened",
    )


def _add_tls_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group(
        "TLS", "SIGHUP reads the files again; clients that are connected stay."
    ).add_argument
    add("--tls-cert", type=Path, metavar="FILE", help="certificate chain in PEM: --port is for TLS alone then")
    add("--tls-key", type=Path, metavar="FILE", help="private key in PEM; by default in the certificate's file")
    add(
        "--tls-key-password",
        "--ssl-cert-password-file",
        type=Path,
        metavar="FILE",
        help="file whose first line is the password of the private key",
    )
    add(
        "--ssl-cert-db",
        type=Path,
        metavar="DIR",
        help="certificate, key and authorities of clients are in this database of NSS, as qpidd has them, with "
        "--ssl-cert-password-file; TLS is on --tls-port (5671)",
    )
    add("--ssl-cert-name", metavar="NAME", help="the broker's certificate in --ssl-cert-db (the name of this machine)")
    add(
        "--tls-port",
        "--ssl-port",
        type=port,
        metavar="PORT",
        help="TLS is on this port, 0 for any free one, and --port is without",
    )
    add(
        "--tls-client-ca",
        type=Path,
        metavar="FILE",
        help="clients may log in by certificates of these authorities (EXTERNAL): the common name is the user",
    )
    add(
        "--tls-client-certificate",
        "--ssl-require-client-authentication",
        action="store_true",
        help="refuse clients without such a certificate",
    )
    add("--tls-crl", type=Path, metavar="FILE", help="certificates of clients that were revoked, in PEM")
    add(
        "--tls-min-version",
        choices=TLS_VERSIONS,
        default=TLS_VERSIONS[0],
        help="the oldest version of TLS (%(default)s)",
    )
    add("--tls-ciphers", metavar="LIST", help="ciphers of TLS 1.2, in OpenSSL's notation")


def _add_login_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("logins").add_argument
    add(
        "--sasl-mechanisms",
        metavar="NAMES",
        help="allow these SASL mechanisms alone; PLAIN and OAUTHBEARER without TLS from other machines only if named",
    )
    add(
        "--kerberos-keytab",
        metavar="FILE",
        type=Path,
        help="let users log in by tickets of Kerberos (GSSAPI): the file has the key of amqp/HOST",
    )
    add(
        "--token-keys",
        metavar="FILE|URL",
        help="let users log in by JSON Web Tokens that were signed with these keys: a key set, or a public key in PEM",
    )
    add("--token-audience", metavar="NAME", help="for whom tokens must be")
    add("--token-issuer", metavar="NAME", help="that tokens must name")
    add("--token-user-claim", default="sub", metavar="CLAIM", help="the user's name in a token (%(default)s)")
    add(
        "--token-groups-claim",
        default="",
        metavar="CLAIM",
        help="the user's groups in a token, which --acl-file may name: a list, or names with blanks between; without "
        "it, tokens name no groups",
    )


def _add_management_options(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "-m",
        "--mgmt-enable",
        type=yes_or_no,
        metavar="yes|no",
        help="run the broker's own QMF agent (yes)",
    )
    for name, text in (
        ("--mgmt-publish", "that agent publishes changes, rather than only answering queries (yes)"),
        ("--mgmt-qmf2", "it does so over QMF v2 (yes)"),
    ):
        add(name, type=yes_or_no, default=True, metavar="yes|no", help=text)


def _add_log_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("options of qpidd: logging").add_argument
    add("-t", "--trace", action="store_true", help="log everything")
    add(
        "--log-enable",
        action="append",
        default=[],
        metavar="RULE",
        help=f"log these messages: LEVEL[+-][:PATTERN]; several times ({DEFAULT_RULE}). Levels are trace, debug, info, "
        "notice, warning, error, critical; a pattern is a category, such as Broker, or a part of a module's name",
    )
    add("--log-disable", action="append", default=[], metavar="RULE", help="but not these; several times")
    for name, default, text in (
        ("time", True, "the time"),
        ("level", True, "the level"),
        ("category", True, "the category"),
        ("source", False, "file and line of the code"),
        ("thread", False, "the thread"),
        ("function", False, "the function"),
        ("hires-timestamp", False, "the time with fractions of seconds"),
    ):
        shown = "yes" if default else "no"
        add(f"--log-{name}", type=yes_or_no, default=default, metavar="yes|no", help=f"lines have {text} ({shown})")
    add("--log-prefix", default="", metavar="STRING", help="lines begin with this text")
    add(
        "--log-output",
        action="append",
        default=[],
        metavar="FILE",
        help="log to stderr, stdout, syslog or a file; replaces the default of the options that follow",
    )
    add(
        "--log-to-stderr",
        type=yes_or_no,
        metavar="yes|no",
        help="log to standard error (yes, unless in the background)",
    )
    add("--log-to-stdout", type=yes_or_no, default=False, metavar="yes|no", help="log to standard output (no)")
    add("--log-to-file", action="append", default=[], metavar="FILE", help="append the log to this file")
    add("--log-to-syslog", type=yes_or_no, metavar="yes|no", help="log to syslog (no, unless in the background)")
    add("--syslog-name", default="qmf-broker", metavar="NAME", help="name in the syslog (%(default)s)")
    add("--syslog-facility", default="LOG_DAEMON", metavar="LOG_XXX", help="facility of the syslog (%(default)s)")


def _add_daemon_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("options of qpidd: daemon").add_argument
    add("-d", "--daemon", action="store_true", help="run in the background, and return when clients can connect")
    add("--pid-dir", type=Path, default=default_folder(), metavar="DIR", help="folder of process ids (%(default)s)")
    add("--pidfile", type=Path, metavar="FILE", help="write the process id to this file")
    add("--close-fd", type=whole_number, action="append", default=[], metavar="FD", help="close this in the background")
    add(
        "-w",
        "--wait",
        type=duration,
        default=600.0,
        metavar="SECONDS",
        help="time that --daemon and --quit wait (%(default)g)",
    )
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "-c", "--check", action="store_true", help="print the process id of the broker on --port; 1 if there is none"
    )
    action.add_argument("-q", "--quit", action="store_true", help="stop that broker")
    action.add_argument("-k", "--kill", action="store_true", help="stop it by SIGKILL")
    add("--socket-fd", type=whole_number, metavar="FD", help="listen on this socket, which is open already")
