"""Tables of states: which event leads from which state to which other.

A module with a state machine holds an enum of its states, one of its events, and a `StateTable`.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

import attrs

StateT = TypeVar("StateT", bound=enum.Enum)
EventT = TypeVar("EventT", bound=enum.Enum)
NextT = TypeVar("NextT")


class IllegalEvent(RuntimeError):
    """An event that is not possible in a state: a bug of this project."""


@attrs.frozen
class StateTable(Generic[StateT, EventT, NextT]):
    """The transitions between the states of one kind of object.

    Attributes:
        subject: the kind, for errors; such as ``a bus``.
        rows: what follows, by state and event: another state, or a tuple with one.
        error: makes the error for an event that is not possible.
    """

    subject: str
    rows: Mapping[StateT, Mapping[EventT, NextT]]
    error: Callable[[str], Exception] = IllegalEvent

    def next(self, state: StateT, event: EventT, name: str = "") -> NextT:
        """What follows when an event happens in a state.

        Args:
            state: before the event.
            event: what happens.
            name: of the object, for the error.

        Raises:
            Exception: `error`; the event is not possible in this state.
        """
        try:
            return self.rows[state][event]
        except KeyError:
            subject = f"{self.subject} {name}" if name else self.subject
            raise self.error(f"{subject} is {state.value}; {event.value!r} is not possible then") from None
