"""Who a request comes from, and what that caller may do."""

from __future__ import annotations

import enum

import attrs

from qmf.web.scopes import Scope


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
        groups: that it is in, as an identity provider says.
    """

    name: str
    scopes: frozenset[Scope]
    proof: Proof
    address: str
    session: str | None = attrs.field(default=None, repr=False)
    groups: frozenset[str] = frozenset()

    @property
    def client(self) -> str:
        """What limits count by, and whose jobs are whose: the name, or without users the address.

        A token is not the user of the same name.
        """
        kind = "token" if self.proof is Proof.TOKEN else "user"
        return f"{kind} {self.name}" if self.name else f"address {self.address}"

    def may(self, scope: Scope) -> bool:
        """Whether it may do that."""
        return scope in self.scopes
