"""Bytes of strangers at the port of STOMP: they are frames or are refused, and leave nothing behind."""

from __future__ import annotations

import contextlib

import pytest
from support.fuzzing import FEW, MANY, try_all

from qmf.broker.protocols.stomp.destinations import DestinationError, read_destination
from qmf.broker.protocols.stomp.frames import Frame, FrameError, FrameReader, StompVersion, encode_frame
from qmf.broker.protocols.stomp.mapping import InvalidHeader, encode_stored

#: Bytes of the largest frame: some inputs are larger.
MAX_FRAME = 200

FRAMES = (
    b"CONNECT\naccept-version:1.0,1.1,1.2\nhost:mq\nheart-beat:1000,2000\nlogin:ann\npasscode:a:b\nclient-id:one\n\n\0",
    b"STOMP\r\naccept-version:1.2\r\nhost:mq\r\n\r\n\0\n\n",
    b"SEND\ndestination:/queue/orders\ncontent-type:text/plain\nreceipt:r\\c1\n\ntwo of \xc3\xa9\0",
    b"SEND\ndestination:/topic/a.b\ncontent-length:4\npersistent:true\npriority:7\nttl:1000\n\n\0\1\0\2\0",
    b"SEND\ndestination:/exchange/amq.topic/k\nAMQ_SCHEDULED_DELAY:5\nexpires:99999999999999\nlevel\\cx:a\\nb\n\n{}\0",
    b"SEND\ndestination:name\ndestination-type:MULTICAST\nreply-to:/temp-queue/me\ntransaction:t\n\n\0\n",
    b"SUBSCRIBE\nid:1\ndestination:/topic/#\nack:client-individual\nselector:a = 'b\\\\c'\nprefetch-count:9\n\n\0",
    b"\n\n\r\nACK\nid:1-1\ntransaction:t\n\n\0NACK\nid:1-2\n\n\0BEGIN\ntransaction:t\n\n\0COMMIT\ntransaction:t\n\n\0",
    b"UNSUBSCRIBE\nid:1\ndurable-subscription-name:d\n\n\0DISCONNECT\nreceipt:2\n\n\0",
)
VERSIONS = tuple(StompVersion)


def read(data: bytes) -> None:
    """Read what comes in two pieces, in a version that the length chooses, as a connection does."""
    reader = FrameReader(MAX_FRAME)
    reader.version = VERSIONS[len(data) % len(VERSIONS)]
    half = len(data) // 2
    with contextlib.suppress(FrameError):
        for piece in (data[:half], data[half:]):
            reader.feed(piece)
            while (frame := reader.next_frame()) is not None:
                use(frame, reader.version)


def use(frame: Frame, version: StompVersion) -> None:
    """What is done with the frames of clients that were let in."""
    if frame.command == "SEND":
        with contextlib.suppress(DestinationError, InvalidHeader):
            destination = read_destination(frame.headers.get("destination", ""), frame.headers, "destination-type")
            encode_stored(frame, destination.key, frame.headers.get("reply-to"))
    encode_frame("ERROR", frame.headers.items(), frame.body, version)


def test_changed_frames() -> None:
    assert try_all(read, FRAMES, FEW) == FEW


@pytest.mark.slow
@pytest.mark.soak
def test_many_changed_frames() -> None:
    assert try_all(read, FRAMES, MANY) == MANY
