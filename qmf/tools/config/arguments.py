"""The properties of new nodes by the names that brokers know, from the options of `qpid-config`. No I/O."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

FILE_COUNT, FILE_SIZE = "qpid.file_count", "qpid.file_size"
POLICY = "qpid.policy_type"
LVQ_KEY = "qpid.last_value_queue_key"
SEQUENCE, IVE = "qpid.msg_sequence", "qpid.ive"
GROUP_HEADER, SHARED_GROUPS = "qpid.group_header_key", "qpid.shared_msg_group"
REPLICATE = "qpid.replicate"
EVENTS = "qpid.queue_event_generation"
LVQ, LVQ_NO_BROWSE = "qpid.last_value_queue", "qpid.last_value_queue_no_browse"

#: Options that need a journal, so they are for durable queues.
STORE = {
    "file_count": FILE_COUNT,
    "file_size": FILE_SIZE,
    "efp_partition_num": "qpid.efp_partition_num",
    "efp_pool_file_size": "qpid.efp_pool_file_size",
    "wcache_page_size": "qpid.wcache-page-size",
    "wcache_num_pages": "qpid.wcache-num-pages",
}
LIMITS = {"max_queue_size": "qpid.max_size", "max_queue_count": "qpid.max_count"}
FLOW = {
    "flow_stop_size": "qpid.flow_stop_size",
    "flow_resume_size": "qpid.flow_resume_size",
    "flow_stop_count": "qpid.flow_stop_count",
    "flow_resume_count": "qpid.flow_resume_count",
}
_ORDERS = {"lvq": LVQ, "lvq-no-browse": LVQ_NO_BROWSE}


def queue_properties(options: argparse.Namespace) -> dict[str, object]:
    """The properties of a queue."""
    properties = extra_properties(options.arguments)
    if options.durable:
        properties |= _given_options(options, STORE)
    properties |= _given_options(options, LIMITS)
    if options.limit_policy not in (None, "none"):
        properties[POLICY] = options.limit_policy.replace("-", "_")
    if options.order in _ORDERS:
        properties[_ORDERS[options.order]] = 1
    properties |= _given_options(options, {"lvq_key": LVQ_KEY, "generate_queue_events": EVENTS} | FLOW)
    properties |= _given_options(options, {"group_header": GROUP_HEADER})
    if options.shared_groups:
        properties[SHARED_GROUPS] = 1
    return properties | _properties_of_both(options)


def exchange_properties(options: argparse.Namespace) -> dict[str, object]:
    """The properties of an exchange."""
    properties = extra_properties(options.arguments)
    if options.sequence:
        properties[SEQUENCE] = 1
    if options.ive:
        properties[IVE] = 1
    return properties | _properties_of_both(options)


def extra_properties(items: Sequence[str]) -> dict[str, object]:
    """The properties of ``--argument NAME=VALUE``: numbers where they are numbers; None without a value."""
    properties: dict[str, object] = {}
    for item in items:
        name, given, text = item.partition("=")
        properties[name] = _value(text) if given else None
    return properties


def header_arguments(words: Sequence[str]) -> dict[str, object]:
    """The arguments of a binding to a headers exchange.

    Args:
        words: ``all`` or ``any`` and conditions ``name=value``, which may end with a comma.

    Raises:
        ValueError: they are not of this form; says what is missing.
    """
    if len(words) < 2:
        raise ValueError("a binding to a headers exchange needs 'any' or 'all', and conditions name=value")
    if words[0] not in ("all", "any"):
        raise ValueError(f"a binding to a headers exchange needs 'any' or 'all', not {words[0]!r}")
    arguments: dict[str, object] = {}
    for word in filter(None, (item.strip(", ") for item in words[1:])):
        name, given, value = word.partition("=")
        if not given or not name:
            raise ValueError(f"{word!r} is not a condition name=value")
        arguments[name] = value
    return {**arguments, "x-match": words[0]}


def ignored_options(options: argparse.Namespace) -> list[str]:
    """Warnings for options of a queue that have no effect."""
    warnings = []
    if options.cluster_durable:
        warnings.append("--cluster-durable has no effect: brokers have no clusters any more")
    if not options.durable and (unused := _given_options(options, STORE)):
        warnings.append(f"{', '.join(unused)}: no effect without --durable")
    return warnings


def _properties_of_both(options: argparse.Namespace) -> dict[str, object]:
    properties = _given_options(options, {"alternate_exchange": "alternate-exchange", "replicate": REPLICATE})
    return properties | {"durable": True} if options.durable else properties


def _given_options(options: argparse.Namespace, names: dict[str, str]) -> dict[str, object]:
    values = {name: getattr(options, option) for option, name in names.items()}
    return {name: value for name, value in values.items() if value is not None}


def _value(text: str) -> object:
    try:
        number = int(text)
    except ValueError:
        return text
    return number if str(number) == text else text  # the zeros of a password count
