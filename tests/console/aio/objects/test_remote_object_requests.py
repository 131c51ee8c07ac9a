"""Requests of remote objects to scripted agents: values, methods, properties, references."""

from __future__ import annotations

import pytest
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import PACKAGE, widget

from qmf.errors import (
    ConstraintError,
    NotFoundError,
    RemoteError,
    RequestTimeout,
)
from qmf.protocol import (
    ExceptionResponse,
    MethodRequest,
    MethodResponse,
    ObjectId,
)


async def test_update_brings_present_values(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w", level=1, label="x")]
    client, _ = await make_client()
    (obj,) = await client.objects("widget")
    agent.objects = [widget("w", level=2)]
    assert (obj["level"], obj["label"]) == (1, "x")
    await obj.update()
    assert (obj["level"], obj["label"]) == (2, None)
    agent.objects = []
    with pytest.raises(NotFoundError, match="no object 'w'"):
        await obj.update()


async def test_methods_are_called_by_position_and_by_name(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    client, _ = await make_client()
    (obj,) = await client.objects("widget")
    for result in (
        await obj.call("echo", 1, "hi"),
        await obj.echo(1, body="hi"),
        await obj.echo(body="hi", sequence=1),
    ):
        assert dict(result) == {"sequence": 1, "body": "hi"}
        assert result.body == "hi"
    (first, *_) = [item.content for item in agent.asked if isinstance(item.content, MethodRequest)]
    assert first == MethodRequest(method="echo", object_id=obj.object_id, arguments={"sequence": 1, "body": "hi"})
    assert dict(await obj.call("stop")) == {}


async def test_defaults_and_references_of_methods(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w"), widget("v")]
    agent.methods["link"] = lambda request: MethodResponse(arguments={"made": ObjectId("new")})
    client, _ = await make_client()
    one, two = await client.objects("widget")
    result = await one.call("link", two)
    assert result["made"] == ObjectId("new", agent.info.name)
    (sent,) = [item.content for item in agent.asked if isinstance(item.content, MethodRequest)]
    assert sent.arguments["force"] is False
    assert sent.arguments["target"] == {"_object_name": "v", "_agent_name": agent.info.name}


async def test_the_error_of_a_failing_method_has_the_agents_reason(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    agent.methods["stop"] = lambda _: ExceptionResponse(text="jammed", code=0x10001, values={"where": "gear"})
    client, _ = await make_client()
    (obj,) = await client.objects("widget")
    with pytest.raises(RemoteError, match=r"jammed \(code 65537\)") as caught:
        await obj.call("stop")
    assert caught.value.values["where"] == "gear"
    agent.mute = {MethodRequest}
    with pytest.raises(RequestTimeout, match=r"no answer to method stop of widget w from agent example.org:widgets:1"):
        await obj.call("stop", _timeout=0.01)


async def test_properties_are_set_by_the_extension(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    agent.methods["_set_properties"] = lambda _: MethodResponse()
    client, _ = await make_client()
    (obj,) = await client.objects("widget")
    await obj.set(level=3, label=None)
    assert obj["level"] == 3
    (sent,) = [item.content for item in agent.asked if isinstance(item.content, MethodRequest)]
    assert (sent.method, sent.arguments) == ("_set_properties", {"level": 3, "label": None})
    with pytest.raises(ConstraintError, match=r"widget.name \(sstr, access RC\): cannot be set"):
        await obj.set(name="x")
    with pytest.raises(ConstraintError, match="must be 1 to 9"):
        await obj.set(level=10)
    with pytest.raises(NotFoundError, match="did you mean level"):
        await obj.set(levl=1)
    with pytest.raises(AttributeError, match=r"await obj.set\(level=...\)"):
        obj.level = 4


@pytest.mark.parametrize("qpidd", [True, False])
async def test_an_agent_that_cannot_set_properties_is_named(
    make_agent: MakeAgent, make_client: MakeClient, qpidd: bool
) -> None:
    agent = await make_agent(qpidd=qpidd)
    agent.objects = [widget("w")]
    agent.methods["_set_properties"] = lambda _: ExceptionResponse(text="UnknownMethod", code=2)
    client, _ = await make_client()
    (obj,) = await client.objects("widget", package=PACKAGE)
    who = "qpidd" if qpidd else "this agent"
    with pytest.raises(RemoteError, match=f"{who} cannot set properties, .*: look for a method of {PACKAGE}:widget"):
        await obj.set(level=3)
    agent.methods["_set_properties"] = lambda _: ExceptionResponse(text="locked", code=6)
    with pytest.raises(RemoteError, match="locked"):
        await obj.set(level=3)


async def test_references_are_followed(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w", parent=ObjectId("p")), widget("p"), widget("lost", parent=ObjectId("gone"))]
    client, _ = await make_client()
    (child,) = await client.objects("widget", where={"name": "w"})
    parent = await child.follow("parent")
    assert parent is not None
    assert parent["name"] == "p"
    assert await parent.follow("parent") is None
    (lost,) = await client.objects("widget", where={"name": "lost"})
    with pytest.raises(NotFoundError, match="no object 'gone'"):
        await lost.follow("parent")
    with pytest.raises(TypeError, match=r"name of org.example.widgets:widget is not a reference"):
        await lost.follow("name")
