"""Ids by which Artemis knows a message that comes again, whatever its connection: it accepts and drops the second one.

Artemis looks for them in the application property `_AMQ_DUPL_ID`, among the last ones of each address (20,000 unless it
is configured otherwise), which are on its disk (its manual, "Duplicate Message Detection").
"""

from __future__ import annotations

import zlib

import attrs

from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.sections import (
    APPLICATION_PROPERTIES,
    HEADER,
    add_value,
    end_of_header,
    read_value,
    remove_value,
)
from qmf.codec import amqp10
from qmf.errors import DecodeError

#: Name of the property.
DUPLICATE_ID = "_AMQ_DUPL_ID"
_NAME = DUPLICATE_ID.encode()
#: Beginning of the ids that links give.
_OURS = "qmf:"


def without_own_id(data: bytes, message_format: int = 0) -> bytes:
    """A message that came from another broker without the id of a link; one that its publisher has given is kept.

    With it, Artemis would drop what is meant to be sent once more: such as a message that has come back from there, or
    copies of it. It has no meaning for receivers either. What the broker cannot read stays as it is.
    """
    if message_format or _NAME not in data:
        return data
    try:
        given = read_value(data, APPLICATION_PROPERTIES, DUPLICATE_ID)
        if isinstance(given, str) and given.startswith(_OURS):
            return remove_value(data, APPLICATION_PROPERTIES, DUPLICATE_ID)
    except DecodeError:  # it is refused when it is published
        pass
    return data


@attrs.frozen
class DuplicateIds:
    """Gives the messages of one link their ids.

    A message in the store is known by its number there, which no other one has, before a restart or after it. Another
    one by its place in its queue, which holds until the broker ends, as the message does. Both go with a checksum of
    the contents, since a last value queue may have put others in their place.

    Attributes:
        link: container id of the link, which no other one has.
        run: is another one whenever the broker starts.
    """

    link: str
    run: str

    def add(self, entry: Entry, data: bytes) -> bytes:
        """A message with its id. One that its publisher has given is kept; one of another link is replaced.

        Args:
            data: what is sent of it. What the broker cannot read has no id.
        """
        if entry.message.opaque:
            return data
        try:
            if _NAME in data:
                given = read_value(data, APPLICATION_PROPERTIES, DUPLICATE_ID)
                if given is not None and not (isinstance(given, str) and given.startswith(_OURS)):
                    return data
            return add_value(data, APPLICATION_PROPERTIES, DUPLICATE_ID, self._id(entry))
        except DecodeError:
            return data

    def _id(self, entry: Entry) -> str:
        number = f"{self.run}.{entry.position}" if entry.record is None else str(entry.record)
        contents = entry.message.data
        if (start := end_of_header(contents)) < 0:
            start = amqp10.decode(contents, len(HEADER))[1]
        # Without the header, which counts deliveries.
        return f"{_OURS}{self.link}:{number}:{zlib.crc32(contents[start:]):08x}"
