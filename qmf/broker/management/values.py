"""What clients chose, as the management model can hold it."""

from __future__ import annotations

from collections.abc import Mapping

#: Bytes that texts of the types sstr and lstr may have.
SHORT, LONG = 255, 65_535


def short(text: str) -> str:
    """Text for an sstr: cut where it is too long."""
    return clip(text, SHORT)


def long(text: str) -> str:
    """Text for an lstr: cut where it is too long."""
    return clip(text, LONG)


def address(listening: str, peer: str) -> str:
    """A connection's name, as qpidd makes it.

    Args:
        listening: host and port that the client has connected to, as the broker was told to listen.
        peer: the client's address and port.
    """
    return short(f"qpid.{listening}-{peer}")


def plain(values: Mapping[str, object]) -> dict[str, object]:
    """A map of simple values: others as text, keys cut where they are too long."""
    return {short(str(name)): _simple(value) for name, value in values.items()}


def clip(text: str, limit: int) -> str:
    """Text that fits into `limit` bytes of UTF-8."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def _simple(value: object) -> object:
    # Types of the AMQP engine derive from Python's own: they are given as those.
    match value:
        case None | bool():
            return value
        case int() if -(1 << 63) <= value < 1 << 64:
            return int(value)
        case float():
            return float(value)
        case _:
            return long(str(value))
