"""Names of topics, and filters for them (5.0, section 4.7)."""

from __future__ import annotations

import attrs

#: How the filter of a shared subscription begins.
SHARE = "$share/"
#: Bytes of the longest name or filter.
_MAX_BYTES = 65_535
#: Levels of the deepest one: as mosquitto, no more than anybody needs.
MAX_LEVELS = 200


def topic_error(topic: str) -> str:
    """Why a text is no name of a topic; empty if it is one."""
    if not topic:
        return "a topic has at least one character"
    if "+" in topic or "#" in topic:
        return "a topic has no wildcards"
    return _length_error(topic)


def filter_error(topic_filter: str) -> str:
    """Why a text is no filter, with or without ``$share``; empty if it is one."""
    if not topic_filter:
        return "a topic filter has at least one character"
    if topic_filter.startswith(SHARE):
        name, separator, shared = topic_filter.removeprefix(SHARE).partition("/")
        if not separator or not shared:
            return "a shared subscription is $share/name/filter"
        if not name or "+" in name or "#" in name:
            return "the name of a shared subscription has at least one character, and no wildcards"
        topic_filter = shared
    levels = topic_filter.split("/")
    for place, level in enumerate(levels):
        if "#" in level and (level != "#" or place != len(levels) - 1):
            return "the wildcard # is the last level of a topic filter"
        if "+" in level and level != "+":
            return "the wildcard + is a level of its own"
    return _length_error(topic_filter)


def _length_error(topic: str) -> str:
    if "\0" in topic:
        return "a topic has no U+0000"
    if topic.count("/") >= MAX_LEVELS:
        return f"a topic has at most {MAX_LEVELS} levels"
    if len(topic) > _MAX_BYTES or len(topic.encode()) > _MAX_BYTES:
        return f"a topic has at most {_MAX_BYTES} bytes"
    return ""


@attrs.frozen
class TopicFilter:
    """A filter, taken apart.

    Attributes:
        group: name of the shared subscription; empty for one that is not shared.
        pattern: the filter without that.
    """

    group: str
    pattern: str

    @classmethod
    def parse(cls, text: str) -> TopicFilter:
        """Take a filter apart that `filter_error` finds nothing wrong with."""
        if not text.startswith(SHARE):
            return cls("", text)
        group, _, pattern = text.removeprefix(SHARE).partition("/")
        return cls(group, pattern)


def matches(topic_filter: str, topic: str) -> bool:
    """True if a filter, without ``$share``, matches a topic."""
    wanted, levels = topic_filter.split("/"), topic.split("/")
    if topic.startswith("$") and wanted[0] in ("+", "#"):
        return False
    for place, level in enumerate(wanted):
        if level == "#":
            return True
        if place == len(levels) or level not in ("+", levels[place]):
            return False
    return len(wanted) == len(levels)
