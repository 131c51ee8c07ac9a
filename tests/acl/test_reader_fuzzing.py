"""Files of access control from strangers: the reader and its rules raise `AclError`, and nothing else."""

from __future__ import annotations

from random import Random

import pytest
from acl.policies import lookups, policy
from support.fuzzing import FEW, MANY, try_all

from qmf.acl.explanation import explain
from qmf.acl.findings import findings
from qmf.acl.reader import AclError, read

VALID = [policy(Random(seed)).encode() for seed in range(40)]
ASKED = list(lookups(Random(1), 3))


def resolve(host: str) -> str:
    raise OSError(f"no address of {host!r}")


def read_and_ask(data: bytes) -> None:
    try:
        rules = read(data.decode("utf-8", "replace"), "fuzz.acl", resolver=resolve)
    except AclError as error:
        str(error)  # must not fail either
        return
    findings(rules)
    for lookup in ASKED:
        explain(rules, lookup).lines()


def test_changed_files() -> None:
    assert try_all(read_and_ask, VALID, FEW) == FEW


@pytest.mark.slow
@pytest.mark.soak
def test_many_changed_files() -> None:
    assert try_all(read_and_ask, VALID, MANY) == MANY
