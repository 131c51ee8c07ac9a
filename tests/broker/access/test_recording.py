"""A dry run: what clients do is recorded, decided and reported, and allowed."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.access.test_control import USERS, session_of

from qmf.acl.rules import Lookup
from qmf.broker import Broker
from qmf.broker.access import recording
from qmf.broker.access.control import FileAccessControl
from qmf.broker.access.recording import AccessRecord, AccessRecordError, case_line
from qmf.messaging.exceptions import UnauthorizedAccess
from qmf.messaging.message import Message
from qmf.tools.acl.cli import main


async def use(broker: Broker) -> None:
    async with session_of(broker, "bob") as session:
        sender = await session.sender("bob.jobs; {create: always}")
        receiver = await session.receiver("bob.jobs")
        for _ in range(2):
            await sender.send(Message("x"), sync=True)
            await receiver.fetch(5)
        await session.acknowledge()
        topic = await session.sender("amq.topic")
        await topic.send(Message("x", subject="news.bob"), sync=True)


async def test_rules_from_a_dry_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules, cases = tmp_path / "rules", tmp_path / "cases"
    rules.write_text("acl deny all all\n")
    access = FileAccessControl(rules, record=AccessRecord(cases))
    async with Broker(port=0, users=USERS, access=access) as broker:
        await use(broker)
    assert access.denials.requests > 0
    lines = cases.read_text().splitlines()
    assert len(lines) == len(set(lines))
    assert "allow bob@QPID publish exchange name=amq.topic routingkey=news.bob" in lines
    assert "allow bob@QPID publish exchange routingkey=bob.jobs" in lines
    assert main(["propose", str(cases)]) == 0
    rules.write_text(capsys.readouterr().out)
    assert main(["test", str(rules), str(cases)]) == 0
    async with Broker(port=0, users=USERS, access=FileAccessControl(rules)) as broker:
        await use(broker)
        async with session_of(broker, "bob") as session:
            with pytest.raises(UnauthorizedAccess):
                await session.sender("others; {create: always}")


def test_a_recording_is_continued(tmp_path: Path) -> None:
    file = tmp_path / "cases"
    for names in ("ab", "bc"):
        record = AccessRecord(file)
        for name in names:
            record.add(Lookup("bob@Q", "consume", "queue", name))
    assert file.read_text() == "".join(f"allow bob@Q consume queue name={name}\n" for name in "abc")
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_recording_has_an_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(recording, "MAX_QUESTIONS", 2)
    record = AccessRecord(tmp_path / "cases")
    for name in "abcd":
        record.add(Lookup("bob@Q", "consume", "queue", name))
    assert len((tmp_path / "cases").read_text().splitlines()) == 2
    assert len(caplog.messages) == 1


def test_names_that_rules_cannot_have() -> None:
    line = case_line(Lookup("bob@Q", "consume", "queue", "a b\nallow eve@Q"))
    assert line.startswith("# ")
    assert "\n" not in line


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(AccessRecordError, match=f"cannot record to {tmp_path}: Is a directory"):
        AccessRecord(tmp_path)
