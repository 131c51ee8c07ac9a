"""Arguments of getObjects."""

from __future__ import annotations

import pytest
from support.scripted_agent import WIDGET

from qmf.console import ClassKey, ObjectId, SchemaClass
from qmf.console.selection import GET_TIME, select
from qmf.errors import CallerError, ConstraintError, NotFoundError

HASH = "3db4e911-1b6b-1523-a48b-6855f4c5627b"
PRINTED = f"org.apache.qpid.broker:queue:_data({HASH})"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({}, CallerError, "give one of _class, _key, _schema and _objectId, not none"),
        ({"_class": "a", "_key": ClassKey(PRINTED)}, CallerError, "not _key, _class"),
        ({"_clas": "a"}, NotFoundError, "did you mean _class"),
        ({"_class": 5}, ConstraintError, "argument _class of getObjects"),
        ({"_key": PRINTED}, ConstraintError, "must be a ClassKey"),
        ({"_class": "a", "_agent": "b"}, ConstraintError, "must be a Agent"),
        ({"_class": "a", "_timeout": "soon"}, ConstraintError, "argument _timeout"),
        ({"_key": ClassKey(PRINTED), "_package": "a"}, CallerError, "_package goes with _class, not with _key"),
    ],
)
def test_wrong_arguments_of_get_objects(arguments: dict[str, object], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        select(arguments)


def test_arguments_of_get_objects() -> None:
    oid = ObjectId.create("a", "x")
    chosen = select({"_class": "queue", "_package": "p", "_timeout": 5, "_agent": None, "ref": oid, "name": "q"})
    assert (chosen.name, chosen.package, chosen.timeout) == ("queue", "p", 5.0)
    assert chosen.values == {"ref": oid.core, "name": "q"}
    assert select({"_objectId": oid}).object_id == oid.core
    assert select({"_key": ClassKey(PRINTED)}).class_key == ClassKey(PRINTED).core
    assert select({"_schema": SchemaClass(WIDGET, ClassKey(WIDGET.key))}).class_key == WIDGET.key
    assert select({"_objectId": oid}).timeout == GET_TIME
