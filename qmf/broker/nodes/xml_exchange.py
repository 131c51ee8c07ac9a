"""XML exchanges: bindings are XQuery expressions over the content and the properties of messages.

As with qpidd, the routing key must equal the binding key; then the query of the binding (its argument ``xquery``)
decides. The content, where it is XML, is the context item; the application properties are external variables. A binding
without a query matches all messages with its key. Queries and content come from clients: they can read neither files
nor the network, documents with a document type declaration count as no XML, and a query has a limit of time.
"""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Callable, Collection, Mapping, Sequence

from qmf.broker.nodes.bindings import XQUERY, Binding, BindingRefused
from qmf.broker.nodes.exchanges import KeyedExchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.settings import ExchangeSettings
from qmf.broker.nodes.xquery_process import LIMIT, Answer, ContentTooLong, QueryProcess
from qmf.codec.message import decode_message
from qmf.errors import DecodeError

log = logging.getLogger("qmf.broker")

#: How the texts of errors begin that do not depend on the message.
_STATIC = ("XPST", "XQST")
#: Seconds for which a query is not tried when it has taken too long.
REST = 10.0


class XmlExchange(KeyedExchange):
    """An XML exchange.

    Attributes:
        too_long: how often queries, and contents, have taken too long.
    """

    kind = "xml"

    def __init__(
        self,
        name: str,
        settings: ExchangeSettings | None = None,
        *,
        limit: float = LIMIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Args:

        name, settings: as of `Exchange`.
        limit: seconds of processor time for a query.
        clock: returns seconds.

        Raises:
            ImportError: the library for queries is not installed.
        """
        if importlib.util.find_spec("saxonche") is None:
            raise ImportError("saxonche is not installed")
        super().__init__(name, settings)
        self.too_long = 0
        self._limit = limit
        self._process = QueryProcess(limit)
        self._queries: dict[Binding, str] = {}
        self._clock = clock
        #: Bindings whose queries have taken too long, with the time at which they are tried again.
        self._slow: dict[Binding, float] = {}
        #: The log has a line about a content that took too long.
        self._warned = False

    def close(self) -> None:
        """See `Exchange`."""
        self._process.close()

    def _on_bound(self, binding: Binding) -> None:
        text = binding.spec.headers.get(XQUERY, "")
        if not isinstance(text, str) or "environment-variable" in text:
            raise BindingRefused(f"Could not parse xquery: {text!r}")
        if text:
            self._check(text)
        self._queries[binding] = text
        super()._on_bound(binding)

    def _on_unbound(self, binding: Binding) -> None:
        super()._on_unbound(binding)
        del self._queries[binding]
        self._slow.pop(binding, None)
        if not any(self._queries.values()):
            self._process.close()

    def _matching(self, message: Message) -> Sequence[Binding]:
        found = super()._matching(message)
        asked = {binding: None for binding in found if self._queries[binding]}
        if not asked:
            return found
        matching = self._ask(asked, message)
        return [binding for binding in found if binding not in asked or binding in matching]

    def _ask(self, asked: Collection[Binding], message: Message) -> Collection[Binding]:
        """The bindings whose queries match; those that rest do not."""
        now = self._clock()
        usable = [binding for binding in asked if self._slow.get(binding, now) <= now] if self._slow else list(asked)
        try:
            content, properties = decode_message(message.data).body, message.headers
        except DecodeError:
            return ()
        data = content.encode() if isinstance(content, str) else content
        try:
            answers = self._process.evaluate(
                [self._queries[binding] for binding in usable],
                _variables(properties),
                bytes(data) if isinstance(data, bytes | memoryview) else b"",
            )
        except ContentTooLong:
            self.too_long += 1
            if not self._warned:
                self._warned = True
                log.warning(
                    "exchange %s: a content of %d bytes took longer than %g s to be read as XML: no query matches it",
                    self.name,
                    len(message.data),
                    self._limit,
                )
            return ()
        matching = set()
        for binding, answer in zip(usable, answers, strict=True):
            if answer is Answer.YES:
                matching.add(binding)
            elif answer is Answer.TOO_LONG:
                self._on_too_long(binding)
            elif isinstance(answer, str):
                log.debug("exchange %s: a query does not apply to a message: %s", self.name, answer)
        return matching

    def _on_too_long(self, binding: Binding) -> None:
        """A query has taken too long for a message, which does not match then."""
        self.too_long += 1
        if binding not in self._slow:
            log.warning(
                "exchange %s: the query of queue %s with the key %r took longer than %g s, and does not match; "
                "whenever it does so, it is not tried for %g s",
                self.name,
                binding.queue.name,
                binding.spec.key,
                self._limit,
                REST,
            )
        self._slow[binding] = self._clock() + REST

    def _check(self, text: str) -> None:
        # What is missing now, such as content and properties, comes with messages.
        try:
            (answer,) = self._process.evaluate([text], {})
        except ContentTooLong as error:
            raise BindingRefused(f"xquery cannot be evaluated: its process has ended: {text}") from error
        if answer is Answer.TOO_LONG:
            raise BindingRefused(f"xquery takes longer than {self._limit:g} s without a message: {text}")
        if isinstance(answer, str) and any(code in answer for code in _STATIC):
            raise BindingRefused(f"Could not parse xquery: {text}: {answer}")


def _variables(properties: Mapping[str, object]) -> dict[str, object]:
    """The application properties that queries can use; as with qpidd, booleans are numbers."""
    return {
        name: int(value) if isinstance(value, bool) else value
        for name, value in properties.items()
        if name and (isinstance(value, float | str) or (isinstance(value, int) and -(1 << 63) <= value < 1 << 63))
    }
