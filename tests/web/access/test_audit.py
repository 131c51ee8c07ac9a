"""Lines of the audit log: who did what with which arguments, how it ended, and after how long."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.shelf import store_agent
from support.web import called, memory_application

from qmf.agent import MethodError
from qmf.bus import MemoryExchange
from qmf.schema import parse_schema
from qmf.testing import FakeAgent

SHELF = "/api/v1/agents/example.org:store:1/objects/org.example.store:shelf:a~2F1"

SECRETS = b"""<schema package="org.example.safe">
  <class name="Safe">
    <property name="name" type="sstr" access="RC" index="y"/>
    <property name="password" type="sstr" access="RW" maxlen="10"/>
    <method name="open">
      <arg name="pin" type="sstr" dir="I" maxlen="10"/>
      <arg name="token" type="sstr" dir="O"/>
    </method>
  </class>
</schema>"""


def lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The records so far, without durations, which every one must have."""
    found = [json.loads(record.message) for record in caplog.records if record.name == "qmf.web.audit"]
    caplog.clear()
    for record in found:
        assert record.pop("duration") >= 0
        assert record.pop("time").endswith("Z")
        assert (record.pop("user"), record.pop("address")) == ("", "127.0.0.1")
    return found


async def test_calls(caplog: pytest.LogCaptureFixture) -> None:
    exchange = MemoryExchange()
    caplog.set_level("INFO", "qmf.web.audit")
    async with store_agent(exchange) as agent, called(memory_application(exchange)) as http:
        agent.on("Shelf", "add", lambda _, **_inputs: {"total": 7})
        target = {"agent": "example.org:store:1", "object": "org.example.store:shelf:a/1", "method": "add"}
        assert (await http.post(f"{SHELF}/methods/add", json={"count": 3})).status_code == 200
        assert lines(caplog) == [
            {
                "action": "call", "by": "nothing", "result": "done", **target,
                "arguments": {"count": 3}, "outputs": {"total": 7},
            }
        ]  # fmt: skip
        assert (await http.post(f"{SHELF}/methods/add", json={"count": 0})).status_code == 422
        (line,) = lines(caplog)
        assert (line["by"], line["result"], line["arguments"]) == ("refused", "refused", {"count": 0})
        assert "must be" in line["reason"]

        def full(*_: object, **__: object) -> None:
            raise MethodError("the shelf is full", code=70000)

        agent.on("Shelf", "add", full)
        assert (await http.post(f"{SHELF}/methods/add", json={"count": 3})).is_error
        (line,) = lines(caplog)
        assert "the shelf is full" in line["reason"]


async def test_properties(caplog: pytest.LogCaptureFixture) -> None:
    exchange = MemoryExchange()
    caplog.set_level("INFO", "qmf.web.audit")
    async with store_agent(exchange), called(memory_application(exchange)) as http:
        assert (await http.patch(f"{SHELF}/properties", json={"limit": 5})).status_code == 200
        (line,) = lines(caplog)
        assert (line["action"], line["result"], line["properties"]) == ("set", "done", {"limit": 5})


async def test_secrets(caplog: pytest.LogCaptureFixture) -> None:
    exchange = MemoryExchange()
    caplog.set_level("INFO", "qmf.web.audit")
    agent = FakeAgent(exchange, parse_schema(SECRETS, "safe.xml"), name="example.org:safe:1")
    agent.add("Safe", name="s", password="x")
    async with agent, called(memory_application(exchange)) as http:
        agent.on("Safe", "open", lambda _, **_inputs: {"token": "t0ken"})
        safe = "/api/v1/agents/example.org:safe:1/objects/org.example.safe:safe:s"
        assert (await http.post(f"{safe}/methods/open", json={"pin": "1234"})).json() == {"token": "t0ken"}
        assert (await http.patch(f"{safe}/properties", json={"password": "s3cret"})).status_code == 200
        assert (await http.patch(f"{safe}/properties", json={"password": "s3cret, and too long"})).status_code == 422
        assert (await http.post(f"{safe}/methods/open", json={"pin": "1234567890123"})).status_code == 422
        text = caplog.text
        found = lines(caplog)
        assert found[0]["arguments"] == {"pin": "***"}
        assert found[0]["outputs"] == {"token": "***"}
        assert found[1]["properties"] == {"password": "***"}
        assert not [secret for secret in ("t0ken", "1234", "s3cret") if secret in text]
