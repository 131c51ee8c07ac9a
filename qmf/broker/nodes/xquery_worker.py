"""The program of the process that evaluates XQuery expressions, since nothing else can end one that takes too long.

It is run as a file, and imports nothing of the project. A request is read from the standard input: two parts, each with
its length in four bytes: JSON with ``queries`` (texts), ``properties`` (external variables by name) and ``limit``
(seconds of processor time for the content, and for each query), and the content of the message. The answer has the byte
``c`` when the content was read, and a byte for each query: ``1``, ``0``, or ``e`` with a text, its length in four bytes
before. What takes longer than the limit ends the process by a signal.
"""

from __future__ import annotations

import contextlib
import json
import resource
import signal
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO
from xml.parsers import expat

import saxonche

_NO_PROTOCOLS = "http://saxon.sf.net/feature/allowedProtocols"
_BOOLEAN = "Q{http://www.w3.org/2001/XMLSchema}boolean"
#: Memory, in KiB, from which on the process ends after an answer: what a query has used is not given back otherwise.
_MOST_MEMORY = 512 * 1024


class _DoctypeError(Exception):
    """A document has a document type declaration."""


class XQueryEvaluator:
    """Evaluates queries. They can read neither files nor the network, and no variables of the environment."""

    def __init__(self) -> None:
        self._saxon = saxonche.PySaxonProcessor(license=False)
        self._saxon.set_configuration_property(_NO_PROTOCOLS, "")

    def document(self, data: bytes) -> saxonche.PyXdmNode | None:
        """The content as XML, or None."""
        if not is_plain_xml(data):
            return None
        try:
            return self._saxon.parse_xml(xml_text=data.decode())
        except (saxonche.PySaxonApiError, UnicodeDecodeError):
            return None

    def evaluate(self, text: str, document: saxonche.PyXdmNode | None, properties: Mapping[str, object]) -> bool:
        """The effective boolean value of a query.

        Raises:
            saxonche.PySaxonApiError: it is no query, or does not apply.
        """
        query = self._saxon.new_xquery_processor()
        query.set_query_content(text)
        if document is not None:
            query.set_context(xdm_item=document)
        for name, value in properties.items():
            query.set_parameter(name, self._item(value))
        return effective_boolean(query.run_query_to_value())

    def _item(self, value: object) -> saxonche.PyXdmAtomicValue:
        if isinstance(value, int):
            return self._saxon.make_integer_value(value)
        if isinstance(value, float):
            return self._saxon.make_double_value(value)
        return self._saxon.make_string_value(str(value))


def effective_boolean(value: saxonche.PyXdmValue | None) -> bool:
    """The effective boolean value of a result (XPath 3.1, 2.4.3); an error counts as false."""
    if value is None or value.size == 0:
        return False
    item = value.head
    if not isinstance(item, saxonche.PyXdmAtomicValue):
        return True
    if value.size > 1:
        return False
    if item.primitive_type_name == _BOOLEAN:
        return bool(item.boolean_value)
    text = item.string_value
    try:
        number = float(text)
    except ValueError:
        return bool(text)
    return number != 0 and number == number


def is_plain_xml(data: bytes) -> bool:
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


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer requests until their end, or until too much memory is used."""
    evaluator = XQueryEvaluator()
    while (head := _read_part(requests)) is not None and (content := _read_part(requests)) is not None:
        request = json.loads(head)
        with _time_limit(request["limit"]):
            document = evaluator.document(content) if content else None
        _send(answers, b"c")
        for text in request["queries"]:
            try:
                with _time_limit(request["limit"]):
                    matches = evaluator.evaluate(text, document, request["properties"])
            except saxonche.PySaxonApiError as error:
                reason = " ".join(str(error).split()).encode()
                _send(answers, b"e" + len(reason).to_bytes(4) + reason)
            else:
                _send(answers, b"1" if matches else b"0")
        if _memory_used() > _MOST_MEMORY:
            return


def _memory_used() -> int:
    """The most memory that this process has used so far, in KiB."""
    with contextlib.suppress(OSError, StopIteration), Path("/proc/self/status").open() as status:
        return int(next(line.split()[1] for line in status if line.startswith("VmHWM:")))
    # On Linux this starts at what the process that started this one had used: a large broker's.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    # By default, the signal ends the process, whatever the library does at that moment.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _send(answers: BinaryIO, data: bytes) -> None:
    answers.write(data)
    answers.flush()


def _read_part(stream: BinaryIO) -> bytes | None:
    size = stream.read(4)
    return stream.read(int.from_bytes(size)) if len(size) == 4 else None


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the broker, which ends this process
    serve(sys.stdin.buffer, sys.stdout.buffer)
