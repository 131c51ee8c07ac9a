"""Names and values that clients chose, made to fit the management schema."""

from __future__ import annotations

from collections.abc import Mapping

#: Bytes that texts of the types sstr and lstr may have.
MAX_SSTR, MAX_LSTR = 255, 65_535


def sstr(text: str) -> str:
    """Text that fits an sstr: cut where it is too long."""
    return clip(text, MAX_SSTR)


def lstr(text: str) -> str:
    """Text that fits an lstr: cut where it is too long."""
    return clip(text, MAX_LSTR)


def connection_address(listening: str, peer: str) -> str:
    """A connection's name, in qpidd's form.

    Args:
        listening: host and port that the broker listens on.
        peer: the client's address and port.
    """
    return sstr(f"qpid.{listening}-{peer}")


def simple_map(values: Mapping[str, object]) -> dict[str, object]:
    """A map of null, booleans, numbers and texts: other values become text, keys are cut where they are too long."""
    return {sstr(str(name)): _simple(value) for name, value in values.items()}


def clip(text: str, limit: int) -> str:
    """Text that fits into `limit` bytes of UTF-8."""
    if len(text) <= limit and text.isascii():
        return text
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def _simple(value: object) -> object:
    # The AMQP engine's types derive from Python's own: they are converted to those.
    match value:
        case None | bool():
            return value
        case int() if -(1 << 63) <= value < 1 << 64:
            return int(value)
        case float():
            return float(value)
        case _:
            return lstr(str(value))
