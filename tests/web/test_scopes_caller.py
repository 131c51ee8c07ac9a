"""Who a caller is for limits and jobs."""

from __future__ import annotations

from qmf.web import Scope
from qmf.web.management.jobs import Jobs
from qmf.web.scopes import Caller, Proof


def caller(name: str, proof: Proof) -> Caller:
    return Caller(name=name, scopes=frozenset(Scope), proof=proof, address="127.0.0.1")


async def test_a_token_and_a_user_of_one_name_are_two() -> None:
    token, user = caller("bob", Proof.TOKEN), caller("bob", Proof.PASSWORD)
    assert (token.client, user.client) == ("token bob", "user bob")
    assert caller("", Proof.NOTHING).client == "address 127.0.0.1"
    assert caller("bob", Proof.SESSION).client == user.client
    jobs = Jobs(10)

    async def secret() -> object:
        return "of the token"

    job = jobs.begin(token, "a call", secret)
    assert jobs.of(user) == []
    assert jobs.of(token) == [job]
    await jobs.close()
