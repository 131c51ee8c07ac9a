"""Invented rules decide as a real qpidd's: its kept answers, and the answers of one that the environment names.

``QMF_TEST_QPIDD_ACL`` is the command that runs a qpidd in the foreground, with ``{port}`` and ``{file}`` for port and
the file of access control. With ``QMF_KEEP_ACL_ANSWERS=1`` its first answers are kept in `KEPT`.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from acl.policies import lookups, policy
from support.waiting import wait_until

from qmf.acl.reader import read
from qmf.acl.rules import Lookup
from qmf.console import Session

COMMAND = os.environ.get("QMF_TEST_QPIDD_ACL", "")
KEPT = Path(__file__).parent / "answers_of_qpidd.json"

#: Invented files whose answers are kept, questions to each, and files that a real broker is asked about.
KEPT_FILES, QUESTIONS, FILES = 100, 30, int(os.environ.get("QMF_ACL_FILES", "100"))

#: What qpidd says of some rules to create anything: it compares a type of object that it never set.
_UNSET = "CREATE CONNECTION rule"


def questions(seed: int) -> tuple[str, list[Lookup]]:
    chance = Random(seed)
    return policy(chance), list(lookups(chance, QUESTIONS))


def decisions(text: str, asked: list[Lookup]) -> list[str]:
    rules = read(text, "invented.acl")
    return [rules.decide(lookup).outcome.value for lookup in asked]


def test_the_kept_answers() -> None:
    kept = json.loads(KEPT.read_text())
    assert len(kept) == KEPT_FILES
    for entry in kept:
        asked = [Lookup(**lookup) for lookup in entry["lookups"]]
        assert decisions(entry["rules"], asked) == entry["answers"], entry["rules"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[tuple[Any, Path]]:
    """The object with the methods of a qpidd's access control, and its file."""
    if not COMMAND:
        pytest.skip("QMF_TEST_QPIDD_ACL names no qpidd")
    file, port = tmp_path / "rules.acl", _free_port()
    file.write_text("acl allow all all\n")
    process = subprocess.Popen(shlex.split(COMMAND.format(port=port, file=file)))
    session = Session()
    try:
        wait_until(lambda: process.poll() is not None or _listens(port))
        session.addBroker(f"amqp://127.0.0.1:{port}")
        yield session.getObjects(_class="acl", _package="org.apache.qpid.acl")[0], file
    finally:
        session.close()
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.slow
def test_a_real_broker(broker: tuple[Any, Path]) -> None:
    acl, file = broker
    kept, left_out = [], 0
    for seed in range(FILES):
        text, asked = questions(seed)
        # Its own user may ask; no question is about it.
        file.write_text(f"acl allow anonymous all\n{text}")
        loaded = acl.reloadACLFile()
        if loaded.status and _UNSET in loaded.text:
            left_out += 1
            continue
        assert loaded.status == 0, text
        answers = [_answer(acl, lookup) for lookup in asked]
        assert decisions(text, asked) == answers, text
        kept.append({"rules": text, "lookups": [_plain(lookup) for lookup in asked], "answers": answers})
    assert left_out <= FILES // 20
    if os.environ.get("QMF_KEEP_ACL_ANSWERS"):
        KEPT.write_text(
            json.dumps(kept[:KEPT_FILES], separators=(",", ":")).replace('},{"rules"', '},\n{"rules"') + "\n"
        )


def _answer(acl: Any, lookup: Lookup) -> str:
    if lookup.publishing:
        result = acl.LookupPublish(lookup.user, lookup.name, (lookup.properties or {})["routingkey"])
    else:
        result = acl.Lookup(lookup.user, lookup.action, lookup.object_type, lookup.name, dict(lookup.properties or {}))
    return str(result.outArgs["result"])


def _plain(lookup: Lookup) -> dict[str, Any]:
    values: dict[str, Any] = {"user": lookup.user, "action": lookup.action, "object_type": lookup.object_type}
    return {**values, "name": lookup.name, "properties": dict(lookup.properties or {}), "publishing": lookup.publishing}
