"""XML exchanges: bindings are XQuery expressions over the content and the properties of messages.

As with qpidd, the routing key must equal the binding key; then the query of the binding (its argument ``xquery``)
decides. The content, where it is XML, is the context item; the application properties are external variables. A binding
without a query matches all messages with its key. Queries and content come from clients: they can read neither files
nor the network, and documents with a document type declaration count as no XML.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from xml.parsers import expat

import saxonche

from qmf.broker.nodes.bindings import XQUERY, Binding, BindingRefused
from qmf.broker.nodes.exchanges import KeyedExchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.settings import ExchangeSettings
from qmf.codec.message import decode_message
from qmf.errors import DecodeError

log = logging.getLogger("qmf.broker")

_NO_PROTOCOLS = "http://saxon.sf.net/feature/allowedProtocols"
#: How the texts of errors begin that do not depend on the message.
_STATIC = ("XPST", "XQST")


class XmlExchange(KeyedExchange):
    """An XML exchange."""

    kind = "xml"

    def __init__(self, name: str, settings: ExchangeSettings | None = None) -> None:
        super().__init__(name, settings)
        self._saxon = saxonche.PySaxonProcessor(license=False)
        self._saxon.set_configuration_property(_NO_PROTOCOLS, "")
        self._queries: dict[Binding, str] = {}

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

    def _matching(self, message: Message) -> Sequence[Binding]:
        found = super()._matching(message)
        if not any(self._queries[binding] for binding in found):
            return found
        try:
            content = decode_message(message.data)
            properties = message.headers
        except DecodeError:
            return [binding for binding in found if not self._queries[binding]]
        document = self._document(content.body)
        return [binding for binding in found if self._matches(self._queries[binding], document, properties)]

    def _matches(self, text: str, document: saxonche.PyXdmNode | None, properties: Mapping[str, object]) -> bool:
        if not text:
            return True
        query = self._saxon.new_xquery_processor()
        query.set_query_content(text)
        if document is not None:
            query.set_context(xdm_item=document)
        for name, value in properties.items():
            if (item := self._item(value)) is not None:
                query.set_parameter(name, item)
        try:
            return _effective_boolean(query.run_query_to_value())
        except saxonche.PySaxonApiError as error:
            log.debug("exchange %s: a query does not apply to a message: %s", self.name, error)
            return False

    def _check(self, text: str) -> None:
        query = self._saxon.new_xquery_processor()
        query.set_query_content(text)
        try:
            query.run_query_to_value()
        except saxonche.PySaxonApiError as error:
            # What is missing now, such as content and properties, comes with messages.
            if any(code in str(error) for code in _STATIC):
                raise BindingRefused(f"Could not parse xquery: {text}: {' '.join(str(error).split())}") from error

    def _document(self, body: object) -> saxonche.PyXdmNode | None:
        """The content as XML, or None."""
        data = body.encode() if isinstance(body, str) else body
        if not isinstance(data, bytes | memoryview) or not _is_plain_xml(bytes(data)):
            return None
        try:
            return self._saxon.parse_xml(xml_text=bytes(data).decode())
        except (saxonche.PySaxonApiError, UnicodeDecodeError):
            return None

    def _item(self, value: object) -> saxonche.PyXdmAtomicValue | None:
        """A property as a value of XQuery; as with qpidd, booleans are numbers."""
        match value:
            case int() if -(1 << 63) <= value < 1 << 63:
                return self._saxon.make_integer_value(int(value))
            case float():
                return self._saxon.make_double_value(float(value))
            case str():
                return self._saxon.make_string_value(str(value))
            case _:
                return None


def _effective_boolean(value: saxonche.PyXdmValue | None) -> bool:
    """The effective boolean value of a result (XPath 3.1, 2.4.3); an error counts as false."""
    if value is None or value.size == 0:
        return False
    item = value.head
    if not isinstance(item, saxonche.PyXdmAtomicValue):
        return True
    if value.size > 1:
        return False
    if item.primitive_type_name == "Q{http://www.w3.org/2001/XMLSchema}boolean":
        return bool(item.boolean_value)
    text = item.string_value
    try:
        number = float(text)
    except ValueError:
        return bool(text)
    return number != 0 and number == number


def _is_plain_xml(data: bytes) -> bool:
    """True for a well-formed document without a document type declaration, and so without entities of its own."""
    parser = expat.ParserCreate()

    def refuse(*_: object) -> None:
        raise _DoctypeError

    parser.StartDoctypeDeclHandler = refuse
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, _DoctypeError):
        return False
    return True


class _DoctypeError(Exception):
    """A document has a document type declaration."""
