"""Every option in the help text of qpidd 1.40, and of the manual: used, accepted with a warning, or refused."""

from __future__ import annotations

import re

import pytest

from qmf.broker.daemon.foreign_options import FOREIGN_OPTIONS, check_foreign_options
from qmf.broker.daemon.options import options_parser

#: The options of release 1.40 with all its modules, each with a value; None for one without.
HELP: dict[str, str | None] = {
    "help": None,
    "version": None,
    "config": "qpidd.conf",
    "client-config": "qpidc.conf",
    "module-dir": "/usr/lib/qpid/daemon",
    "load-module": "acl.so",
    "no-module-dir": None,
    "data-dir": "/var/lib/qpidd",
    "no-data-dir": None,
    "paging-dir": "/var/lib/qpidd",
    "port": "5672",
    "interface": "lo",
    "listen-disable": "tcp",
    "protocols": "amqp0-10",
    "worker-threads": "3",
    "connection-backlog": "10",
    "mgmt-enable": "yes",
    "mgmt-publish": "no",
    "mgmt-qmf2": "yes",
    "mgmt-qmf1": "yes",
    "mgmt-pub-interval": "10s",
    "queue-purge-interval": "600s",
    "max-purge-batch": "1000",
    "auth": "yes",
    "realm": "QPID",
    "sasl-service-name": "qpidd",
    "default-queue-limit": "104857600",
    "tcp-nodelay": None,
    "require-encryption": None,
    "known-hosts-url": "amqp:host",
    "sasl-config": "/etc/sasl2",
    "default-flow-stop-threshold": "80",
    "default-flow-resume-threshold": "70",
    "default-event-threshold-ratio": "80",
    "default-message-group": "other",
    "enable-timestamp": "yes",
    "link-maintenance-interval": "2s",
    "link-heartbeat-interval": "120s",
    "dtx-default-timeout": "60",
    "dtx-max-timeout": "3600",
    "max-negotiate-time": "10000",
    "federation-tag": "west",
    "session-max-unacked": "5000",
    "trace": None,
    "log-enable": "debug+:Broker",
    "log-disable": "trace:Network",
    "log-time": "no",
    "log-level": "yes",
    "log-source": "1",
    "log-thread": "true",
    "log-function": "yes",
    "log-hires-timestamp": "yes",
    "log-category": "no",
    "log-prefix": "broker",
    "log-to-stderr": "no",
    "log-to-stdout": "yes",
    "log-to-file": "broker.log",
    "log-to-syslog": "no",
    "syslog-name": "broker",
    "syslog-facility": "LOG_LOCAL0",
    "daemon": None,
    "transport": "rdma",
    "pid-dir": "/run/qpidd",
    "pidfile": "qpidd.pid",
    "close-fd": "5",
    "wait": "600",
    "check": None,
    "quit": None,
    "kill": None,
    "socket-fd": "3",
    "acl-file": "qpidd.acl",
    "connection-limit-per-user": "5",
    "max-connections": "500",
    "connection-limit-per-ip": "5",
    "max-queues-per-user": "5",
    "ssl-use-export-policy": None,
    "ssl-cert-password-file": "password",
    "ssl-cert-db": "/etc/pki",
    "ssl-cert-name": "broker",
    "ssl-port": "5671",
    "ssl-require-client-authentication": None,
    "ssl-sasl-no-dict": None,
    "domain": "example",
    "queue-patterns": "temp.*",
    "topic-patterns": "news.*",
    "ha-cluster": "yes",
    "ha-queue-replication": "yes",
    "ha-brokers-url": "amqp:a,b",
    "ha-public-url": "amqp:a",
    "ha-replicate": "all",
    "ha-username": "ha",
    "ha-password": "secret",
    "ha-mechanism": "PLAIN",
    "ha-backup-timeout": "10s",
    "ha-flow-messages": "1000",
    "ha-flow-bytes": "0",
    "store-dir": "/var/lib/qpidd",
    "truncate": "yes",
    "wcache-page-size": "16",
    "wcache-num-pages": "16",
    "tpl-wcache-page-size": "4",
    "tpl-wcache-num-pages": "16",
    "efp-partition": "1",
    "efp-file-size": "2048",
    "overwrite-before-return": "yes",
    "journal-flush-timeout": "500ms",
}
#: Options that only the manual has.
MANUAL: dict[str, str | None] = {
    "staging-threshold": "5000000",
    "ack": "0",
    "log-output": "stderr",
    "store-directory": "/var/lib/qpidd",
    "store-async": "1",
    "store-force": "yes",
    "num-jfiles": "8",
    "jfile-size-pgs": "24",
    "replication-queue": "replication",
    "create-replication-queue": "true",
    "cluster-name": "my_cluster",
}
#: One letter for an option.
LETTERS = {
    "h": "help",
    "v": "version",
    "p": "port",
    "m": "mgmt-enable",
    "t": "trace",
    "d": "daemon",
    "w": "wait",
    "c": "check",
    "q": "quit",
    "k": "kill",
}
FOREIGN = {item.name: item for item in FOREIGN_OPTIONS}
ENDING = {"help", "version"}


@pytest.mark.parametrize("name", sorted({**HELP, **MANUAL}.keys() - ENDING))
def test_an_option_is_used_or_its_reason_is_told(name: str) -> None:
    value = {**HELP, **MANUAL}[name]
    options = options_parser().parse_args([f"--{name}" if value is None else f"--{name}={value}"])
    errors, warnings = check_foreign_options(options)
    if (item := FOREIGN.get(name)) is None:
        assert (errors, warnings) == ([], [])
        return
    (text,) = errors if item.refused else warnings
    assert (errors, warnings) == (([text], []) if item.refused else ([], [text]))
    assert text.startswith(f"--{name}")
    assert text.endswith(item.reason)
    assert "secret" not in text


def test_options_have_their_letters() -> None:
    text = options_parser().format_help()
    for letter, name in LETTERS.items():
        assert re.search(rf"(?<!\S)-{letter}[ ,].*--{name}\b", text)


def test_there_is_no_foreign_option_besides() -> None:
    assert FOREIGN.keys() <= {**HELP, **MANUAL}.keys()


@pytest.mark.parametrize(
    "words",
    [
        ["--ha-cluster", "no"],
        ["--protocols", "AMQP1.0"],
        ["--transport", "tcp"],
        ["--listen-disable", "rdma"],
        ["--mgmt-qmf1", "no"],
        ["--known-hosts-url", "none"],
        ["--enable-timestamp=0"],
    ],
)
def test_values_that_ask_for_nothing_are_fine(words: list[str]) -> None:
    assert check_foreign_options(options_parser().parse_args(words)) == ([], [])


def test_the_help_names_every_reason() -> None:
    text = " ".join(options_parser().format_help().split())
    for item in FOREIGN_OPTIONS:
        assert f"--{item.name}" in text
        assert " ".join(item.reason.split()) in text
