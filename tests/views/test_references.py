"""References of objects, and which members may refer to which class."""

from __future__ import annotations

from qmf.protocol import ObjectId
from qmf.schema import TYPES, ClassKey, ClassSchema, Property, Reference, Statistic
from qmf.views.references import may_refer, reference_members, references

REF = TYPES["objId"]
SCHEMA = ClassSchema(
    package="p",
    name="c",
    properties=(
        Property(name="name", type=TYPES["sstr"]),
        Property(name="queueRef", type=REF, references=Reference(None, "Queue")),
        Property(name="storeRef", type=REF, references=Reference("other", "store")),
        Property(name="anyRef", type=REF, references=Reference(None, "x"), general_reference=True),
        Property(name="oldRef", type=REF),
    ),
    statistics=(Statistic(name="lastRef", type=REF),),
)
MEMBERS = {item.name: item for item in reference_members(SCHEMA)}


def test_references_that_are_set() -> None:
    values: dict[str, object] = {
        "name": "n",
        "queueRef": ObjectId("q"),
        "oldRef": ObjectId(""),
        "lastRef": ObjectId("l"),
    }
    assert list(references(SCHEMA, values)) == [("queueRef", ObjectId("q")), ("lastRef", ObjectId("l"))]


def test_which_members_may_refer_to_a_class() -> None:
    def names(package: str, name: str) -> list[str]:
        return [item.name for item in MEMBERS.values() if may_refer(SCHEMA, item, ClassKey(package, name))]

    assert names("p", "queue") == ["queueRef", "anyRef", "oldRef", "lastRef"]
    assert names("other", "Store") == ["storeRef", "anyRef", "oldRef", "lastRef"]
    assert names("p", "store") == ["anyRef", "oldRef", "lastRef"]
    assert [item.name for item in MEMBERS.values() if may_refer(SCHEMA, item, None)] == list(MEMBERS)
    assert not may_refer(SCHEMA, SCHEMA.properties[0], None)
