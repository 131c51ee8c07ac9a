"""An address as a value."""

from __future__ import annotations

import re

from qmf.messaging.addresses.options import AddressOptions, read_options
from qmf.messaging.addresses.parser import parse
from qmf.messaging.exceptions import MalformedAddress

#: The name that stands for a fresh, temporary node.
TEMPORARY = "#"
#: The name that stands for no target: each message names its own in `Message.to`.
ANONYMOUS = "<null>"

_PLAIN = re.compile(r"[A-Za-z0-9_.#*%@$^!+<>{}:,-]+\Z")


class Address(str):
    """The text of an address, taken apart; equal to that text, so it can be used wherever text is expected.

    Attributes:
        name: of the node.
        subject: default subject of a sender, filter of a receiver; None where the address has none.
        options: what it says about node and link.

    Source: High Level Client API, "Addresses".
    """

    __slots__ = ("name", "options", "subject")

    name: str
    subject: str | None
    options: AddressOptions

    def __new__(cls, text: str) -> Address:
        """Take the text of an address apart.

        Raises:
            MalformedAddress: it is no text, or the text is not an address; names line and column.
            InvalidOption: an option is unknown or has a value of a wrong type; names the option.
        """
        if isinstance(text, Address):
            return text
        if not isinstance(text, str):
            raise MalformedAddress(text=f"an address must be text, not {text!r}")
        parsed = parse(text)
        address = super().__new__(cls, text)
        address.name = parsed.name
        address.subject = parsed.subject
        address.options = read_options(text, parsed.options or {})
        return address

    @classmethod
    def of(cls, name: str, subject: str | None = None) -> Address:
        """The address of a node, whatever characters its name has."""
        text = quote(name)
        return cls(text if subject is None else f"{text}/{quote(subject)}")

    @property
    def temporary(self) -> bool:
        """True for `#`, a fresh node."""
        return self.name == TEMPORARY

    @property
    def anonymous(self) -> bool:
        """True for `<null>`, no target."""
        return self.name == ANONYMOUS

    def __reduce__(self) -> tuple[object, ...]:
        return Address, (str(self),)

    def __str__(self) -> str:
        return str.__str__(self)


def quote(text: str) -> str:
    """The text as it is written in an address: in quotes where it has characters with a meaning."""
    return text if _PLAIN.match(text) else literal(text)


def literal(text: str) -> str:
    """The text as a value of an option, in quotes."""
    escaped = re.sub(r"[\\']|[^ -~]", lambda match: _escape(match[0]), text)
    return f"'{escaped}'"


def _escape(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    return f"\\u{ord(char):04x}" if char < " " or char == "\x7f" else char
