"""The kinds of rows in a lake: one folder for each."""

from __future__ import annotations

import enum


class RowKind(enum.Enum):
    """What a row describes; the value is the name of the folder."""

    OBJECTS = "objects"  #: one sample of one object
    EVENTS = "events"
    UNTYPED = "untyped"  #: objects and events whose schema is unknown
    HEARTBEATS = "heartbeats"
    AGENTS = "agents"  #: agents that were added, removed or restarted
    SCHEMAS = "schemas"
    GAPS = "gaps"  #: what is missing: lost messages, connections and values
