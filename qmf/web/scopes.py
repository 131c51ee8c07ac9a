"""Who requests come from, and what these callers may do."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable, Mapping

import attrs


class Scope(enum.Enum):
    """What a caller may do. Scopes are independent: `call` alone does not allow to read."""

    READ = "read"  #: see agents, schemas, objects, events and metrics
    CALL = "call"  #: call methods
    SET = "set"  #: set properties
    MESSAGES = "messages"  #: send and consume messages


ALL_SCOPES = frozenset(Scope)


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


def read_grants(
    texts: Iterable[str], users: Collection[str], groups: Mapping[str, Collection[str]]
) -> Mapping[str, frozenset[Scope]]:
    """Scopes by user: those of a user's groups together, unless the user is named itself.

    Args:
        texts: such as ``ann=read,call`` or ``operators=all``.
        groups: users by the names of groups.

    Raises:
        ValueError: a text is wrong; begins with it.
    """
    of_groups: dict[str, frozenset[Scope]] = {}
    of_users: dict[str, frozenset[Scope]] = {}
    for text in texts:
        name, equals, scopes = text.partition("=")
        if not equals:
            raise ValueError(f"{text}: expected USER=SCOPES")
        try:
            found = parse_scopes(scopes)
        except ValueError as error:
            raise ValueError(f"{text}: {error}") from None
        if name in users:
            of_users[name] = found
        elif name in groups and users:
            for user in groups[name]:
                of_groups[user] = of_groups.get(user, frozenset()) | found
        else:
            raise ValueError(f"{text}: no such user in the file of --users, nor group in that of --acl-file")
    return {**of_groups, **of_users}


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
