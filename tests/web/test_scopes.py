"""Scopes of users and of groups."""

from __future__ import annotations

import pytest

from qmf.web.scopes import ALL_SCOPES, Scope, read_grants

GROUPS = {"staff": {"ann", "bob"}, "readers": {"bob", "eve"}}


def test_scopes_of_groups_are_added_and_those_of_a_user_are_its_own() -> None:
    found = read_grants(["staff=call", "readers=read", "eve=all"], {"ann", "bob", "eve"}, GROUPS)
    assert found == {"ann": {Scope.CALL}, "bob": {Scope.CALL, Scope.READ}, "eve": ALL_SCOPES}


@pytest.mark.parametrize(
    ("text", "users", "reason"),
    [
        ("ann", {"ann"}, "ann: expected USER=SCOPES"),
        ("ann=eat", {"ann"}, "ann=eat: scopes are read, call, set, messages or all"),
        ("none=read", {"ann"}, "none=read: no such user in the file of --users, nor group"),
        ("staff=read", set(), "staff=read: no such user"),
    ],
)
def test_wrong_grants(text: str, users: set[str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_grants([text], users, GROUPS)
