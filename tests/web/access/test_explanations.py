"""Why a broker has denied what the server asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmf.broker import Broker
from qmf.broker.access.control import FileAccessControl
from qmf.console.aio import Client
from qmf.errors import CallerError, RemoteError
from qmf.models.broker import console as remote
from qmf.web.access.explanations import explain

RULES = "acl deny web@QPID purge queue name=q\nacl allow web@QPID all\n"


@pytest.mark.parametrize(
    ("rules", "lines"),
    [
        (
            RULES,
            [
                "Decided by deny: line 1: acl deny web@QPID purge queue name=q",
                "To allow it, insert before line 1: acl allow web@QPID purge queue name=q",
            ],
        ),
        (f"acl deny web@QPID access method name=explainDenials\n{RULES}", []),
    ],
    ids=["explained", "not allowed to ask"],
)
async def test_a_denial(tmp_path: Path, rules: str, lines: list[str]) -> None:
    file = tmp_path / "rules"
    file.write_text(rules)
    access = FileAccessControl(file)
    async with (
        Broker(port=0, users={"web": "w"}, access=access, queues=["q"], management=3600.0) as broker,
        Client(f"amqp://web:w@127.0.0.1:{broker.port}", settle=0.0) as client,
    ):
        await client.locate(settle=0.0)
        (queue,) = [item for item in await client.objects(remote.Queue) if item.name == "q"]
        with pytest.raises(RemoteError) as caught:
            await queue.purge(0, {})
        assert list(await explain(client, caught.value)) == lines
        assert await explain(client, CallerError("another error")) == ()
