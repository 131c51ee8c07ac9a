"""Silences: who wants no notifications of which alerts, from when until when, and why. Pure."""

from __future__ import annotations

import datetime
import enum
from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from qmf.pipeline.notifying.matchers import Matcher, all_match
from qmf.views.times import parse_instant

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class SilenceState(enum.Enum):
    """What a silence does at one time."""

    PENDING = "pending"
    ACTIVE = "active"
    EXPIRED = "expired"


@attrs.frozen(kw_only=True)
class Silence:
    """A silence, in one of its versions.

    Attributes:
        id: unique.
        matchers: all must match the labels of an alert.
        starts_ns, ends_ns: from when until when, ns since 1970.
        created_by: person.
        comment: reason.
        updated_ns: when this version was written.
    """

    id: str
    matchers: tuple[Matcher, ...]
    starts_ns: int
    ends_ns: int
    created_by: str
    comment: str
    updated_ns: int

    def state(self, now: int) -> SilenceState:
        """Pending before its start, expired from its end on."""
        if now >= self.ends_ns:
            return SilenceState.EXPIRED
        return SilenceState.PENDING if now < self.starts_ns else SilenceState.ACTIVE

    def expire(self, now: int) -> Silence:
        """The version that ends now; one that did not start yet never does."""
        return attrs.evolve(self, starts_ns=min(self.starts_ns, now), ends_ns=min(self.ends_ns, now), updated_ns=now)

    def to_json(self) -> dict[str, Any]:
        """As in Alertmanager's API."""
        return {
            "id": self.id,
            "matchers": [matcher.to_json() for matcher in self.matchers],
            "startsAt": format_time(self.starts_ns),
            "endsAt": format_time(self.ends_ns),
            "updatedAt": format_time(self.updated_ns),
            "createdBy": self.created_by,
            "comment": self.comment,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Silence:
        """The reverse of `to_json`.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        return cls(
            id=str(content["id"]),
            matchers=tuple(Matcher.from_json(item) for item in content["matchers"]),
            starts_ns=parse_time(content["startsAt"]),
            ends_ns=parse_time(content["endsAt"]),
            created_by=str(content["createdBy"]),
            comment=str(content["comment"]),
            updated_ns=parse_time(content["updatedAt"]),
        )


def find_silence(silences: Iterable[Silence], labels: Mapping[str, str], now: int) -> Silence | None:
    """The first active silence that matches, or None."""
    for silence in silences:
        if silence.state(now) is SilenceState.ACTIVE and all_match(silence.matchers, labels):
            return silence
    return None


def format_time(ns: int) -> str:
    """RFC 3339 in UTC, to the nanosecond, without trailing zeros."""
    seconds, rest = divmod(ns, 10**9)
    text = (_EPOCH + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:09d}".rstrip("0").rstrip(".") + "Z"


def parse_time(text: str) -> int:
    """The reverse of `format_time`; other zones are understood, and a time without a zone is in UTC.

    Raises:
        ValueError: the text is not a time.
    """
    try:
        return parse_instant(text.strip(), datetime.UTC)
    except ValueError:
        raise ValueError(f"must be a time such as 2030-01-31T12:00:00Z, not {text!r}") from None
