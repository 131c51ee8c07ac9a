"""Schemas learned one by one are assembled by package, sorted, with the original names."""

from __future__ import annotations

from uuid import UUID

from qmf_codegen.from_agent.assembly import assemble

from qmf.schema import (
    TYPES,
    Argument,
    ClassSchema,
    Direction,
    EventSchema,
    Method,
    Property,
    Reference,
    Severity,
    Statistic,
)

P, Q = "org.one", "org.two"


def reference(name: str, to: Reference | None) -> Property:
    return Property(name=name, type=TYPES["objId"], references=to, general_reference=to is None)


def test_packages_and_what_is_in_them_are_sorted() -> None:
    events = [EventSchema(package=P, name=name, severity=Severity.WARN) for name in ("b", "A")]
    classes = [ClassSchema(package=package, name=name) for package in (Q, P) for name in ("z", "y")]
    first, second = assemble([*events, *classes])
    assert (first.schema.package, second.schema.package) == (P, Q)
    assert [item.name for item in first.schema] == ["y", "z", "A", "b"]
    assert first.notes == second.notes == ()


def test_classes_get_the_names_that_others_call_them_by() -> None:
    method = Method(
        name="m",
        arguments=(
            Argument(name="a", type=TYPES["objId"], direction=Direction.OUT, references=Reference(None, "InArgument")),
        ),
    )
    user = ClassSchema(
        package=P,
        name="user",
        properties=(reference("p", Reference(None, "InProperty")), reference("q", Reference(Q, "InOther"))),
        statistics=(Statistic(name="s", type=TYPES["objId"], references=Reference(None, "InStatistic")),),
        methods=(method,),
    )
    event = EventSchema(
        package=P,
        name="e",
        severity=Severity.WARN,
        arguments=(Argument(name="x", type=TYPES["objId"], references=Reference(P, "InEvent")),),
    )
    others = [ClassSchema(package=P, name=f"in{name}") for name in ("property", "statistic", "argument", "event")]
    first, second = assemble([user, event, *others, ClassSchema(package=Q, name="inother")])
    assert [item.name for item in first.schema.classes] == [
        "InArgument",
        "InEvent",
        "InProperty",
        "InStatistic",
        "user",
    ]
    assert [item.name for item in second.schema.classes] == ["InOther"]
    assert first.schema.events[0].arguments[0].references == Reference(None, "InEvent")
    assert first.schema.classes[-1].properties[1].references == Reference(Q, "InOther")
    assert first.notes == ()


def test_a_name_with_capitals_stays() -> None:
    item = ClassSchema(package=P, name="HaBroker", properties=(reference("r", Reference(None, "HABROKER")),))
    ((made,),) = [item.schema.classes for item in assemble([item])]
    assert made.name == "HaBroker"
    assert made.properties[0].references == Reference(None, "HaBroker")


def test_references_that_lead_nowhere_are_noted() -> None:
    item = ClassSchema(
        package=P,
        name="a",
        properties=(reference("p", Reference(None, "Gone")),),
        statistics=(Statistic(name="s", type=TYPES["objId"], references=Reference(P, "Gone")),),
    )
    (found,) = assemble([item])
    made = found.schema.classes[0]
    assert made.properties[0].general_reference
    assert made.properties[0].references is made.statistics[0].references is None
    assert found.notes == (
        "a.p: refers to class Gone, which the agent doesn't have",
        "a.s: refers to class Gone, which the agent doesn't have",
        "unknown classes of references, written as any class: a.s",
    )


def test_the_last_version_counts() -> None:
    versions = [ClassSchema(package=P, name="a", hash=UUID(int=number), desc=str(number)) for number in (1, 2)]
    (found,) = assemble(versions)
    assert [item.desc for item in found.schema.classes] == ["2"]
    assert found.notes == (f"{versions[0].key} is left out: there is another version",)
    assert found.schema.classes[0].hash is None


def test_a_class_and_an_event_may_share_a_name() -> None:
    (found,) = assemble([ClassSchema(package=P, name="x"), EventSchema(package=P, name="x", severity=Severity.WARN)])
    assert len(list(found.schema)) == 2
