"""Counts of an agent about itself."""

from __future__ import annotations

import logging

import attrs

_log = logging.getLogger("qmf.agent")


@attrs.frozen(kw_only=True)
class AgentStatistics:
    """Counts since an agent was made, and its current number of subscriptions.

    Attributes:
        messages_in: messages received, of any kind.
        messages_out: messages handed to the bus.
        malformed: messages that could not be decoded, and were skipped.
        ignored: messages that are no requests to an agent, or have no reply-to.
        locates: locate requests answered.
        queries: queries answered, refusals included.
        method_calls: method requests answered, refusals and property changes included.
        calls_expired: of these, calls that were not started, because their callers had given up.
        schema_requests: QMFv1 schema requests answered.
        subscriptions: subscriptions granted.
        active_subscriptions: subscriptions that have not ended.
        answers_lost: answers that could not be sent because the connection was gone or the broker refused.
        events_sent: events that the broker accepted.
        events_dropped: events lost because the buffer was full while there was no connection, or refused by the broker.
        events_suppressed: events suppressed because there were too many of their kind.
        objects_published: objects in indications that the broker accepted; each time counts.
        deletions_dropped: deletions lost because there were too many while there was no connection.
        unencodable: objects or events skipped because they could not be encoded: a bug of this library.
    """

    messages_in: int = 0
    messages_out: int = 0
    malformed: int = 0
    ignored: int = 0
    locates: int = 0
    queries: int = 0
    method_calls: int = 0
    calls_expired: int = 0
    schema_requests: int = 0
    subscriptions: int = 0
    active_subscriptions: int = 0
    answers_lost: int = 0
    events_sent: int = 0
    events_dropped: int = 0
    events_suppressed: int = 0
    objects_published: int = 0
    deletions_dropped: int = 0
    unencodable: int = 0


class AgentMetrics:
    """The counts of one agent, by the names in `AgentStatistics`. Each is changed by one thread only."""

    def __init__(self) -> None:
        self._counts = dict.fromkeys((item.name for item in attrs.fields(AgentStatistics)), 0)
        self._logged: set[str] = set()

    def add(self, name: str, n: int = 1) -> None:
        """Count `n` more of `name`."""
        self._counts[name] += n

    def warn_once(self, kind: str, text: str, *args: object) -> None:
        """Log a warning, but only the first of its kind: what a peer can repeat must not fill the log."""
        if kind not in self._logged:
            self._logged.add(kind)
            _log.warning(text + " (further ones are only counted)", *args)

    def snapshot(self, **others: int) -> AgentStatistics:
        """The current counts; `others` are those that are counted elsewhere."""
        return AgentStatistics(**{**self._counts, **others})
