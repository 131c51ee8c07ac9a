"""Who a request comes from, and what that caller may do."""

from __future__ import annotations

import enum

import attrs


class Scope(enum.Enum):
    """What a caller may do. Scopes are independent: `call` alone does not allow to read."""

    READ = "read"  #: see agents, schemas, objects, events and metrics
    CALL = "call"  #: call methods
    SET = "set"  #: set properties
    MESSAGES = "messages"  #: send and consume messages


ALL_SCOPES = frozenset(Scope)


class Proof(enum.Enum):
    """How a caller proved who it is."""

    NOTHING = "nothing"  #: there are no users
    PASSWORD = "password"
    SESSION = "session"
    TOKEN = "token"


@attrs.frozen(kw_only=True)
class Caller:
    """Who a request comes from.

    Attributes:
        name: the user, or the name of the token; empty without users.
        scopes: what it may do.
        proof: how it proved that.
        address: its address in the network.
        session: secret of its session, or None.
    """

    name: str
    scopes: frozenset[Scope]
    proof: Proof
    address: str
    session: str | None = attrs.field(default=None, repr=False)

    @property
    def client(self) -> str:
        """What limits count by: the name, or without users the address."""
        return f"user {self.name}" if self.name else f"address {self.address}"

    def may(self, scope: Scope) -> bool:
        """Whether it may do that."""
        return scope in self.scopes


def parse_scopes(text: str) -> frozenset[Scope]:
    """Scopes from a list like ``read,call``; ``all`` for every one.

    Raises:
        ValueError: no such scope; names those that exist.
    """
    names = [item.strip() for item in text.split(",") if item.strip()]
    if names == ["all"]:
        return ALL_SCOPES
    known = {item.value: item for item in Scope}
    wrong = [name for name in names if name not in known]
    if wrong or not names:
        raise ValueError(f"scopes are {', '.join(known)} or all, separated by commas, not {text!r}")
    return frozenset(known[name] for name in names)
