"""The public names of the messaging API, and the agreement of its two forms."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
import subprocess
import sys

import pytest

import qmf.messaging
from qmf import messaging
from qmf.errors import QmfError
from qmf.messaging import Disposition, Message, aio
from qmf.messaging.option_attributes import OptionAttribute

#: Names that only one of the forms has: what sessions, senders and receivers belong to, and what asyncio needs.
ONLY_SYNC = {
    "Connection": set[str](),
    "Session": {"connection", "set_message_received_notify_handler"},
    "Sender": {"session"},
    "Receiver": {"session"},
}
ONLY_ASYNC = {"Connection": {"wait_attached"}, "Session": {"abandon"}, "Sender": set[str](), "Receiver": set[str]()}


@pytest.mark.parametrize("name", messaging.__all__)
def test_every_name_is_there_with_a_docstring(name: str) -> None:
    value = getattr(messaging, name)
    if inspect.isclass(value):
        assert inspect.getdoc(value)


def test_the_listed_names_are_those_that_can_be_loaded() -> None:
    assert set(messaging.__all__) <= set(dir(messaging))


def test_importing_loads_no_proton_and_starts_nothing() -> None:
    code = "import qmf.messaging, sys, threading; print('proton' in sys.modules, threading.active_count())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout.strip() == "False 1"


@pytest.mark.parametrize("name", ["Connection", "Session", "Sender", "Receiver"])
def test_both_forms_have_the_same_names_and_no_others(name: str) -> None:
    sync, core = getattr(messaging, name), getattr(aio, name)
    of_sync, of_core = ({item for item in dir(kind) if not item.startswith("_")} for kind in (sync, core))
    assert of_sync - of_core == ONLY_SYNC[name]
    assert of_core - of_sync == ONLY_ASYNC[name]
    for item in of_sync & of_core:
        one, two = getattr(sync, item), getattr(core, item)
        if inspect.isfunction(one) and inspect.isfunction(two):
            missing = set(inspect.signature(two).parameters) - set(inspect.signature(one).parameters)
            assert missing == set(), f"{name}.{item}"


def errors() -> list[type[Exception]]:
    found = [getattr(messaging, name) for name in messaging.__all__]
    return [item for item in found if inspect.isclass(item) and issubclass(item, QmfError)]


@pytest.mark.parametrize("kind", errors())
def test_errors_can_be_copied_and_pickled(kind: type[Exception]) -> None:
    if issubclass(kind, messaging.MessagingError):
        error = kind("amqp:some-code", "what went wrong", where="here")
        for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert type(again) is kind
            assert (again.code, again.text, again.info) == ("amqp:some-code", "what went wrong", {"where": "here"})
        assert str(error) == "what went wrong (amqp:some-code) where='here'"
        assert str(kind()) == kind.__name__
    else:
        assert kind is messaging.Timeout


def test_the_tree_of_errors() -> None:
    parents = {kind.__name__: kind.__mro__[1].__name__ for kind in errors()}
    assert parents["AuthenticationFailure"] == "ConnectError"
    assert parents["Empty"] == "FetchError"
    assert parents["TargetCapacityExceeded"] == "SendError"
    assert parents["NotFound"] == "ResolutionError"
    assert parents["MalformedAddress"] == "AddressError"
    assert parents["TransactionAborted"] == "TransactionError"
    assert parents["MessagingError"] == parents["Timeout"] == "QmfError"


def test_messages_are_shown_by_what_they_have() -> None:
    assert repr(Message("x")) == "Message('x')"
    assert repr(Message()) == "Message()"
    message = Message({"a": 1}, subject="s", properties={"p": 1}, durable=True, content_type="other")
    assert repr(message) == (
        "Message(subject='s', durable=True, properties={'p': 1}, content_type='other', content={'a': 1})"
    )
    assert repr(messaging.UNLIMITED) == "UNLIMITED"


def test_dispositions_are_checked() -> None:
    assert repr(Disposition(messaging.REJECTED, code="c", text="t")) == "Disposition(REJECTED, code='c', text='t')"
    with pytest.raises(ValueError, match="REJECTED or RELEASED, not UNLIMITED"):
        Disposition(messaging.UNLIMITED)
    with pytest.raises(ValueError, match="unknown option 'code' of RELEASED; there is set_redelivered"):
        Disposition(messaging.RELEASED, code="x")


def test_the_package_describes_itself() -> None:
    assert qmf.messaging.__doc__


@pytest.mark.parametrize("form", [messaging, aio], ids=["synchronous", "asyncio"])
@pytest.mark.parametrize(
    "name", ["Connection", "Session", "Sender", "Receiver", "ReceivedMessage", "Message", "Disposition", "Consumer"]
)
def test_public_names_are_documented(form: object, name: str) -> None:
    """By a docstring of their own, or among the attributes of their class; of a connection, or as published options."""
    kind = getattr(form, name, None) or getattr(messaging, name)
    told = " ".join(inspect.getdoc(base) or "" for base in kind.__mro__ if base is not object)
    names = {item for item in dir(kind) if not item.startswith("_")}
    names |= {item for base in kind.__mro__ for item in vars(base).get("__annotations__", ()) if item[0] != "_"}
    missing = []
    for item in sorted(names):
        value = inspect.getattr_static(kind, item, None)
        function = getattr(value, "fget", None) or getattr(value, "__func__", value)
        documented = inspect.isroutine(function) and inspect.getdoc(function)
        if not documented and not isinstance(value, OptionAttribute) and not re.search(rf"\b{item}\b", told):
            missing.append(item)
    assert missing == []
