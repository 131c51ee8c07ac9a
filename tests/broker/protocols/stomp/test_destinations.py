"""Destinations."""

from __future__ import annotations

import pytest

from qmf.broker.protocols.stomp.destinations import (
    DestinationError,
    StompDestination,
    StompDestinationKind,
    read_destination,
)

QUEUE, TEMPORARY, EXCHANGE, ADDRESS = StompDestinationKind


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("/queue/a/b", "", StompDestination(QUEUE, "a/b")),
        ("/topic/a.*", "", StompDestination(EXCHANGE, "amq.topic", "a.*")),
        ("/exchange/amq.direct/k/l", "", StompDestination(EXCHANGE, "amq.direct", "k/l")),
        ("/exchange/amq.fanout", "", StompDestination(EXCHANGE, "amq.fanout")),
        ("/temp-queue/me", "", StompDestination(TEMPORARY, "me")),
        ("jobs", "", StompDestination(ADDRESS, "jobs")),
        ("jobs", "ANYCAST", StompDestination(QUEUE, "jobs")),
        ("jobs", "MULTICAST", StompDestination(EXCHANGE, "amq.topic", "jobs")),
        ("/queue/jobs", "MULTICAST", StompDestination(QUEUE, "jobs")),
    ],
)
def test_what_they_name(text: str, kind: str, expected: StompDestination) -> None:
    headers = {"destination-type": kind} if kind else {}
    assert read_destination(text, headers, "destination-type") == expected


@pytest.mark.parametrize("text", ["/queue/", "/exchange/", "/exchange//k", "/temp-queue/", ""])
def test_without_a_name(text: str) -> None:
    with pytest.raises(DestinationError, match="has no name"):
        read_destination(text, {}, "destination-type")


def test_a_type_that_is_none() -> None:
    with pytest.raises(DestinationError, match="destination-type is ANYCAST or MULTICAST, not 'x'"):
        read_destination("jobs", {"destination-type": "x"}, "destination-type")
