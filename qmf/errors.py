"""Every error that this project raises on purpose.

The tree, by guilt::

    QmfError
    ├── CallerError            the calling program or its user asked for something wrong
    │   ├── SchemaError        an XML schema is invalid; carries every problem with file and line
    │   ├── ConstraintError    a value does not fit its property, statistic or argument
    │   ├── EncodeError        a value that the wire cannot hold (`qmf.codec`)
    │   └── NotFoundError      no such class, object, method or agent; carries near matches
    ├── PeerError              the other side misbehaved or said no
    │   ├── DecodeError        bytes that no valid message starts with
    │   ├── ProtocolError      a valid message with invalid QMF content
    │   │   └── ContentError   the same, with what is needed to answer it (`qmf.protocol`)
    │   │       └── UnknownOpcode
    │   └── RemoteError        an agent answered with `_exception`
    ├── NetworkError           the broker or the way to it
    │   ├── ConnectError       no connection; names the URL and the reason
    │   │   └── AuthenticationError
    │   ├── DisconnectedError  the connection is gone (and may come back)
    │   └── LinkError          the broker refused or closed a link or a message
    └── RequestTimeout         nobody answered in time

Errors store facts as attributes; `__str__` makes the sentence. Anything else that escapes from this project is a bug.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import attrs


class QmfError(Exception):
    """Base of all errors of this project; never raised itself."""


class CallerError(QmfError):
    """The calling program, or its user, asked for something that cannot be."""


@attrs.frozen
class Problem:
    """One fault in a schema file.

    Attributes:
        file: name of the file as the caller gave it.
        line: line in the file, from 1.
        message: what is wrong, in one line.
    """

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class SchemaError(CallerError):
    """An XML schema is invalid.

    Attributes:
        problems: every fault found, in file order.
    """

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class ConstraintError(CallerError, ValueError):
    """A value does not fit the property, statistic or argument it was given to.

    Attributes:
        where: what the value was for, e.g. ``filesystem.threshold`` or ``argument 'signal' of process.signal``.
        type_name: the schema type, e.g. ``uint8``.
        value: the offending value.
        reason: the bound or rule, e.g. ``must be 0 to 255``.
    """

    def __init__(self, where: str, type_name: str, value: object, reason: str) -> None:
        self.where = where
        self.type_name = type_name
        self.value = value
        self.reason = reason
        super().__init__(where, type_name, value, reason)

    def __str__(self) -> str:
        shown = repr(self.value)
        if len(shown) > 60:
            shown = f"{shown[:40]}...{shown[-17:]}"
        return f"{self.where} ({self.type_name}): {self.reason}, not {shown}"


class NotFoundError(CallerError, LookupError):
    """No such class, object, method or agent.

    Attributes:
        kind: what was looked for, e.g. ``class``.
        name: the name that is not there.
        near: names that are there and look alike, best first.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str] = ()) -> None:
        self.kind = kind
        self.name = name
        self.near: Sequence[str] = _near(name, list(known))
        super().__init__(kind, name, self.near)

    def __str__(self) -> str:
        hint = f"; did you mean {' or '.join(self.near)}?" if self.near else ""
        return f"no {self.kind} {self.name!r}{hint}"


def _near(name: str, known: Sequence[str]) -> list[str]:
    """At most three of the names that `name` may have been meant for: those it begins, then those that look alike."""
    begun = sorted(item for item in known if name and item.lower().startswith(name.lower()))
    alike = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return list(dict.fromkeys(begun + alike))[:3]


class PeerError(QmfError):
    """The other side misbehaved or refused."""


class DecodeError(PeerError):
    """Bytes that are not a valid encoding. The message names the offset where known."""


class ProtocolError(PeerError):
    """A valid AMQP message with content that is not valid QMF."""


class RemoteError(PeerError):
    """An agent answered with an exception.

    Attributes:
        text: the agent's words.
        code: QMF error code, or None when the agent sent none (QMF2.md 4.6).
        agent: name of the agent, where known.
        values: everything else that the agent put into the exception.
    """

    def __init__(
        self, text: str, code: int | None = None, agent: str | None = None, values: dict[str, object] | None = None
    ) -> None:
        self.text = text
        self.code = code
        self.agent = agent
        self.values = values or {}
        super().__init__(text, code, agent)

    def __str__(self) -> str:
        code = "" if self.code is None else f" (code {self.code})"
        agent = f"agent {self.agent}: " if self.agent else ""
        return f"{agent}{self.text}{code}"


class NetworkError(QmfError):
    """The broker, or the way to it, failed."""


class ConnectError(NetworkError):
    """No connection could be made.

    Attributes:
        url: where to, without password.
        reason: why not, in the words of the system or the broker.
    """

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(url, reason)

    def __str__(self) -> str:
        return f"cannot connect to {self.url}: {self.reason}"


class AuthenticationError(ConnectError):
    """The broker refused the user, the password or every SASL mechanism we offer."""


class DisconnectedError(NetworkError):
    """The connection is not there (any more).

    Attributes:
        url: where to, without password.
        reason: what ended it.
    """

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(url, reason)

    def __str__(self) -> str:
        return f"not connected to {self.url}: {self.reason}"


class LinkError(NetworkError):
    """The broker refused or closed a link, or refused a message.

    Attributes:
        address: node the link was for; empty for the anonymous sender.
        condition: AMQP error condition, e.g. ``amqp:not-found``.
        description: the broker's words.
    """

    def __init__(self, address: str, condition: str, description: str) -> None:
        self.address = address
        self.condition = condition
        self.description = description
        super().__init__(address, condition, description)

    def __str__(self) -> str:
        where = f"link to {self.address!r}" if self.address else "sending link"
        words = f": {self.description}" if self.description else ""
        return f"{where} refused by the broker with {self.condition}{words}"


class RequestTimeout(QmfError, TimeoutError):
    """Nobody answered in time.

    Attributes:
        what: what was asked, e.g. ``method echo of filesystem '/'``.
        agent: who was asked, where it was one agent.
        seconds: how long we waited.
    """

    def __init__(self, what: str, agent: str | None, seconds: float) -> None:
        self.what = what
        self.agent = agent
        self.seconds = seconds
        super().__init__(what, agent, seconds)

    def __str__(self) -> str:
        agent = f" from agent {self.agent}" if self.agent else ""
        return f"no answer to {self.what}{agent} within {self.seconds:g} s"
