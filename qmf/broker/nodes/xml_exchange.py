"""XML exchanges: bindings are XQuery expressions over the content and the properties of messages.

As with qpidd, the routing key must equal the binding key; then the query of the binding (its argument ``xquery``)
decides. The content, where it is XML, is the context item; the application properties are external variables. A binding
without a query matches all messages with its key. Queries and content come from clients: they can read neither files
nor the network, documents with a document type declaration count as no XML, and a query has a limit of time. Links ask
before they publish a message (`XmlExchange.ask`), so that the broker need not wait; for all others it waits.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import attrs

from qmf.broker.nodes.bindings import XQUERY, Binding, BindingRefused
from qmf.broker.nodes.exchanges import KeyedExchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.settings import ExchangeSettings
from qmf.broker.nodes.xquery_process import LIMIT, ContentTooLong, QueryProcess, XQueryResult
from qmf.codec.message import decode_message
from qmf.errors import DecodeError

log = logging.getLogger("qmf.broker")

#: How the texts of errors begin that do not depend on the message.
_STATIC = ("XPST", "XQST")
#: Seconds for which a query is not tried when it has taken too long.
REST = 10.0


@attrs.frozen
class _Questions:
    """Queries with the bindings that they belong to, and what they are about."""

    bindings: Sequence[Binding]
    queries: Sequence[str]
    properties: Mapping[str, object]
    content: bytes


class XmlExchange(KeyedExchange):
    """An XML exchange.

    Attributes:
        too_long: how often queries, and contents, have taken too long.
    """

    kind = "xml"
    by_subject = False

    def __init__(
        self,
        name: str,
        settings: ExchangeSettings | None = None,
        *,
        limit: float = LIMIT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make an exchange without bindings.

        Args:
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
        self._closed = False
        #: Evaluates one message after the other; None before the first.
        self._executor: ThreadPoolExecutor | None = None
        #: The bindings whose queries match the message that is being published, where that is known already.
        self._decided: Collection[Binding] | None = None

    def close(self) -> None:
        """See `Exchange`. What `ask` was to report is reported as no match."""
        self._closed = True
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False, cancel_futures=True)
        self._process.close()
        if executor is not None:
            executor.shutdown()

    def ask(self, message: Message, on_answer: Callable[[Collection[Binding]], None]) -> bool:
        """Evaluate the queries for a message on a thread. Belongs to the broker's loop.

        Args:
            message: to be published next, in `decide`.
            on_answer: called in a later turn of the loop with the bindings whose queries match.

        Returns:
            False if there are no queries to evaluate: nothing is called.
        """
        questions = self._questions(message)
        if questions is None:
            return False
        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "qmf-broker-queries")
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._executor, self._evaluate, questions)

        def finish(future: asyncio.Future[list[XQueryResult | str] | None]) -> None:
            on_answer(() if future.cancelled() else self._matches(questions, future.result()))

        future.add_done_callback(finish)
        return True

    @contextlib.contextmanager
    def decide(self, matching: Collection[Binding]) -> Iterator[None]:
        """Publish a message whose queries were evaluated: those of these bindings match."""
        self._decided = matching
        try:
            yield
        finally:
            self._decided = None

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
        if not any(self._queries[binding] for binding in found):
            return found
        matching = self._decided
        if matching is None:
            questions = self._questions(message)
            matching = () if questions is None else self._matches(questions, self._evaluate(questions))
        return [binding for binding in found if not self._queries[binding] or binding in matching]

    def _questions(self, message: Message) -> _Questions | None:
        """What is to be evaluated for a message: not the queries that rest; None for nothing."""
        if self._closed:
            return None
        now = self._clock()
        bindings = [
            binding
            for binding in super()._matching(message)
            if self._queries[binding] and self._slow.get(binding, now) <= now
        ]
        if not bindings:
            return None
        try:
            content, properties = decode_message(message.data).body, message.headers
        except DecodeError:
            return None
        data = content.encode() if isinstance(content, str) else content
        return _Questions(
            bindings,
            [self._queries[binding] for binding in bindings],
            _variables(properties),
            bytes(data) if isinstance(data, bytes | memoryview) else b"",
        )

    def _evaluate(self, questions: _Questions) -> list[XQueryResult | str] | None:
        """The answers, or None if the content takes too long; on any thread."""
        try:
            return self._process.evaluate(questions.queries, questions.properties, questions.content)
        except ContentTooLong:
            return None

    def _matches(self, questions: _Questions, answers: list[XQueryResult | str] | None) -> Collection[Binding]:
        """The bindings whose queries match."""
        if answers is None:
            self.too_long += 1
            if not self._warned:
                self._warned = True
                log.warning(
                    "exchange %s: a content of %d bytes took longer than %g s to be read as XML: no query matches it",
                    self.name,
                    len(questions.content),
                    self._limit,
                )
            return ()
        matching = set()
        for binding, answer in zip(questions.bindings, answers, strict=True):
            if answer is XQueryResult.YES:
                matching.add(binding)
            elif answer is XQueryResult.TOO_LONG:
                self._on_too_long(binding)
            elif isinstance(answer, str):
                log.debug("exchange %s: a query does not apply to a message: %s", self.name, answer)
        return matching

    def _on_too_long(self, binding: Binding) -> None:
        """A query has taken too long for a message, which does not match then."""
        if binding not in self._queries:
            return  # removed meanwhile
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
        if answer is XQueryResult.TOO_LONG:
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
