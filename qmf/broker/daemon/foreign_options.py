"""qpidd's options that have no effect here, or that are refused, each with its reason. No I/O."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import attrs

_NO_LINKS = "it is for links by AMQP 0-10, which this broker does not have"
_NO_MODULES = "this broker has no modules to load"
_NO_HA = "this broker has no high availability"
_LINEAR_STORE = "it belongs to qpidd's journal, which this broker does not have"


@attrs.frozen
class ForeignOption:
    """An option of qpidd that this broker does not implement.

    Attributes:
        name: without dashes.
        reason: why it has no effect, or is refused.
        value: name of its value; None for an option without one.
        refused: the broker does not start; otherwise it warns.
        harmless: values that ask for nothing, such as ``no``: neither refused nor warned of.
    """

    name: str
    reason: str
    value: str | None = "VALUE"
    refused: bool = False
    harmless: tuple[str, ...] = ()


def _refuse(name: str, reason: str, value: str | None = "VALUE", *harmless: str) -> ForeignOption:
    return ForeignOption(name, reason, value, refused=True, harmless=harmless)


_NO = ("no", "false", "0", "off")

#: In the order of qpidd's help; at the end those of older releases.
FOREIGN_OPTIONS: Sequence[ForeignOption] = (
    ForeignOption("client-config", _NO_LINKS, "FILE"),
    ForeignOption("module-dir", _NO_MODULES, "DIR"),
    ForeignOption("load-module", _NO_MODULES, "FILE"),
    ForeignOption("no-module-dir", _NO_MODULES, None),
    _refuse("listen-disable", "this broker listens on TCP alone", "TRANSPORT", "rdma", "ssl"),
    _refuse("protocols", "this broker speaks AMQP 1.0 alone", "PROTOCOL", "amqp1.0"),
    ForeignOption("worker-threads", "one thread does all the work", "N"),
    ForeignOption(
        "mgmt-qmf1", "QMF v1 is answered with schemas, and nothing is published by it", "yes|no", harmless=_NO
    ),
    ForeignOption("paging-dir", "messages that are kept on disk instead of memory are in --data-dir", "DIR"),
    ForeignOption("max-purge-batch", "expired messages are removed without batches", "MESSAGES"),
    ForeignOption("sasl-service-name", "the service of --kerberos-keytab is amqp", "NAME", harmless=("amqp",)),
    ForeignOption("tcp-nodelay", "it is always on", None),
    ForeignOption("known-hosts-url", "AMQP 1.0 has no list of known hosts", "URL", harmless=("none",)),
    _refuse("sasl-config", "users are in the file of --users, not in Cyrus SASL", "DIR"),
    ForeignOption(
        "default-flow-stop-threshold",
        "queues have flow control where they ask for it by qpid.flow_stop_count or qpid.flow_stop_size",
        "PERCENT",
        harmless=("0",),
    ),
    ForeignOption(
        "default-flow-resume-threshold",
        "queues have flow control where they ask for it by qpid.flow_resume_count or qpid.flow_resume_size",
        "PERCENT",
        harmless=("0",),
    ),
    ForeignOption(
        "default-event-threshold-ratio",
        "queues raise such events where they ask for them by qpid.alert_count or qpid.alert_size",
        "PERCENT",
        harmless=("0",),
    ),
    ForeignOption("default-message-group", "it is always qpid.no-group", "GROUP", harmless=("qpid.no-group",)),
    ForeignOption("link-maintenance-interval", _NO_LINKS, "SECONDS"),
    ForeignOption("link-heartbeat-interval", _NO_LINKS, "SECONDS"),
    ForeignOption("dtx-default-timeout", "AMQP 1.0 has no distributed transactions", "SECONDS"),
    ForeignOption("dtx-max-timeout", "AMQP 1.0 has no distributed transactions", "SECONDS"),
    ForeignOption("federation-tag", _NO_LINKS, "NAME"),
    ForeignOption("session-max-unacked", "the credit of a receiver is its limit", "DELIVERIES"),
    _refuse("transport", "this broker listens on TCP alone", "TRANSPORT", "tcp"),
    _refuse("ssl-use-export-policy", "ciphers of that policy are broken: leave it out", None),
    ForeignOption("ssl-sasl-no-dict", "--sasl-mechanisms EXTERNAL forbids passwords", None),
    _refuse("ha-cluster", _NO_HA, "yes|no", *_NO),
    _refuse("ha-queue-replication", _NO_HA, "yes|no", *_NO),
    _refuse("ha-brokers-url", _NO_HA, "URL"),
    _refuse("ha-public-url", _NO_HA, "URL"),
    _refuse("ha-replicate", _NO_HA, "LEVEL", "none"),
    _refuse("ha-username", _NO_HA, "USER"),
    _refuse("ha-password", _NO_HA, "PASS"),
    _refuse("ha-mechanism", _NO_HA, "MECH"),
    ForeignOption("ha-backup-timeout", _NO_HA, "SECONDS"),
    ForeignOption("ha-flow-messages", _NO_HA, "N"),
    ForeignOption("ha-flow-bytes", _NO_HA, "N"),
    _refuse("truncate", "delete the folder of --data-dir for an empty store", "yes|no", *_NO),
    ForeignOption("wcache-page-size", _LINEAR_STORE, "N"),
    ForeignOption("wcache-num-pages", _LINEAR_STORE, "N"),
    ForeignOption("tpl-wcache-page-size", _LINEAR_STORE, "N"),
    ForeignOption("tpl-wcache-num-pages", _LINEAR_STORE, "N"),
    ForeignOption("efp-partition", _LINEAR_STORE, "N"),
    ForeignOption("efp-file-size", _LINEAR_STORE, "N"),
    ForeignOption("overwrite-before-return", _LINEAR_STORE, "yes|no", harmless=_NO),
    ForeignOption("journal-flush-timeout", _LINEAR_STORE, "SECONDS"),
    # Of older releases, as in the manual.
    ForeignOption("staging-threshold", "messages are not staged to disk by their size", "N"),
    ForeignOption("ack", "it is of AMQP 0-10", "N"),
    ForeignOption("store-async", _LINEAR_STORE, "yes|no"),
    _refuse("store-force", "delete the folder of --data-dir for an empty store", "yes|no", *_NO),
    ForeignOption("num-jfiles", _LINEAR_STORE, "N"),
    ForeignOption("jfile-size-pgs", _LINEAR_STORE, "N"),
    _refuse("replication-queue", "queues are not replicated", "NAME"),
    _refuse("create-replication-queue", "queues are not replicated", "yes|no", *_NO),
    _refuse("cluster-name", "brokers have no clusters any more", "NAME"),
)


def add_foreign_options(parser: argparse.ArgumentParser) -> None:
    """Add these options; `check_foreign_options` looks at what was given."""
    group = parser.add_argument_group(
        "options of qpidd without effect here",
        "They are accepted with a warning, so that command lines and configuration files for qpidd can be used, or "
        "refused where the broker would do something else than was asked for.",
    )
    for item in FOREIGN_OPTIONS:
        text = f"{'refused' if item.refused else 'no effect'}: {item.reason}"
        flags = (f"--{item.name}",)
        if item.value is None:
            group.add_argument(*flags, action="append_const", const="yes", dest=_dest(item), help=text)
        else:
            group.add_argument(*flags, action="append", metavar=item.value, dest=_dest(item), help=text)


def check_foreign_options(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    """What to say about the options that were given.

    Returns:
        why the broker cannot start, and warnings.
    """
    errors: list[str] = []
    warnings: list[str] = []
    for item in FOREIGN_OPTIONS:
        given = [value for value in getattr(options, _dest(item)) or () if value.lower() not in item.harmless]
        if given:
            shown = (
                f"--{item.name}" if item.value is None or item.name == "ha-password" else f"--{item.name} {given[0]}"
            )
            if item.refused:
                errors.append(f"{shown}: {item.reason}")
            else:
                warnings.append(f"{shown} has no effect: {item.reason}")
    return errors, warnings


def _dest(item: ForeignOption) -> str:
    return f"foreign_{item.name.replace('-', '_')}"
