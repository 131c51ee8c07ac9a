"""What a policy is told of exchanges and queues, by the names in ACL files."""

from __future__ import annotations

from collections.abc import Mapping

from qmf.broker.nodes.settings import ExchangeSettings, OverflowPolicy, QueueSettings

#: Arguments of queues that flow to disk, with their names in ACL files; those of files are of a store of earlier days.
_OF_PAGES_AND_FILES = {
    "maxpages": "qpid.max_pages_loaded",
    "maxpagefactor": "qpid.page_factor",
    "maxfilecount": "qpid.file_count",
    "maxfilesize": "qpid.file_size",
}


def exchange_properties(settings: ExchangeSettings) -> dict[str, object]:
    """Of an exchange that exists, or is to be created."""
    return {
        "type": settings.kind,
        "alternate": settings.alternate,
        "durable": settings.durable,
        "autodelete": settings.auto_delete,
    }


def queue_properties(settings: QueueSettings) -> dict[str, object]:
    """Of a queue."""
    return {
        "alternate": settings.alternate,
        "durable": settings.durable,
        "exclusive": settings.exclusive,
        "autodelete": settings.auto_delete,
        "policytype": settings.overflow.value,
        "maxqueuesize": settings.limits.size or 0,
        "maxqueuecount": settings.limits.count or 0,
    }


def new_queue_properties(settings: QueueSettings) -> Mapping[str, object]:
    """Of a queue that is to be created."""
    arguments = settings.arguments
    return {
        **queue_properties(settings),
        "paging": settings.overflow is OverflowPolicy.FLOW_TO_DISK,
        **{name: arguments[own] for name, own in _OF_PAGES_AND_FILES.items() if own in arguments},
    }
