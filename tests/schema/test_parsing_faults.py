"""Bad schema files, each with the exact line and message that is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmf.errors import SchemaError, SchemaProblem
from qmf.schema import parse_schema, read_schema


def faults(text: str) -> list[str]:
    """What is reported for a file called ``f``."""
    with pytest.raises(SchemaError) as caught:
        parse_schema(text.encode(), "f")
    return [str(problem) for problem in caught.value.problems]


def in_class(members: str) -> str:
    """A schema of two classes; the members of the first one begin in line 3."""
    return (
        f'<schema package="org.example">\n<class name="Thing">\n{members}\n</class>\n<class name="Other"/>\n</schema>'
    )


def in_schema(elements: str) -> str:
    """A schema whose elements begin in line 2."""
    return f'<schema package="org.example">\n{elements}\n</schema>'


ROOTS = [
    ("<schema/>", "f:1: schema: attribute 'package' is missing"),
    ('<schema package=""/>', "f:1: schema: the package is empty"),
    (
        '<schema package="org..x"/>',
        "f:1: schema: package 'org..x' must be names joined by dots, e.g. 'org.example.app'",
    ),
    (
        '<schema package="1st"/>',
        "f:1: schema: package '1st' must be names joined by dots, e.g. 'org.example.app'",
    ),
    (f'<schema package="{"a" * 256}"/>', "f:1: schema: the package has more than 255 characters"),
    ('<schema package="p" version="1"/>', "f:1: schema: unknown attribute 'version'"),
    ("\n<schemas/>", "f:2: the root element is 'schemas', not 'schema'"),
    ('<schema xmlns="urn:x" package="p"/>', "f:1: the root element is '{urn:x}schema', not 'schema'"),
    (
        '<schema package="p" xmlns:x="urn:x" x:y=""/>',
        "f:1: schema: unknown attribute '{urn:x}y'",
    ),
    (
        '<schema package="p" xmlns:x="http://www.w3.org/2001/XMLSchema-instance" x:type="class"/>',
        "f:1: schema: unknown attribute '{http://www.w3.org/2001/XMLSchema-instance}type'",
    ),
    ('<schema package="p">\n<class name="A">', "f:2: not well-formed XML: Premature end of data in tag class line 2"),
    ('<schema\npackage="p"\nx=1/>', "f:3: not well-formed XML: AttValue: \" or ' expected"),
    ('<schema package="&who;"/>', "f:1: not well-formed XML: Entity 'who' not defined"),
    ("", "f:1: not well-formed XML: Document is empty"),
]

STRUCTURE = [
    (in_schema("<clas/>"), "f:2: unexpected element 'clas' in schema; did you mean 'class'?"),
    (in_schema("<banana/>"), "f:2: unexpected element 'banana' in schema"),
    (in_class("<propety/>"), "f:3: unexpected element 'propety' in class 'Thing'; did you mean 'property'?"),
    (in_class("<event/>"), "f:3: unexpected element 'event' in class 'Thing'"),
    (
        in_class('<x:property xmlns:x="urn:x"/>'),
        "f:3: unexpected element '{urn:x}property' in class 'Thing'; did you mean 'property'?",
    ),
    (
        in_class('<method name="m"><args/></method>'),
        "f:3: unexpected element 'args' in method 'm'; did you mean 'arg'?",
    ),
    (in_class('<property name="p" type="bool"><arg/></property>'), "f:3: property 'p': may not contain elements"),
    (in_class('<method name="m">text</method>'), "f:3: method 'm': text is not allowed here"),
    (in_class('<property type="bool"/>'), "f:3: property: attribute 'name' is missing"),
    (in_class('<property name="p"/>'), "f:3: property 'p': attribute 'type' is missing"),
    (
        in_class('<property name="p" type="bool" acess="RO"/>'),
        "f:3: property 'p': unknown attribute 'acess'; did you mean 'access'?",
    ),
    (in_class('<property name="p" type="bool" assign="x"/>'), "f:3: property 'p': unknown attribute 'assign'"),
    (in_class('<property\n\n name="p"/>'), "f:3: property 'p': attribute 'type' is missing"),
    (in_schema('<event sev="warn"/>'), "f:2: event: attribute 'name' is missing"),
    (in_schema("<class/>"), "f:2: class: attribute 'name' is missing"),
]

VALUES = [
    (
        in_class('<property name="depth" type="uint7"/>'),
        "f:3: property 'depth': unknown type 'uint7'; did you mean 'uint8'?",
    ),
    (in_class('<property name="p" type="banana"/>'), "f:3: property 'p': unknown type 'banana'"),
    (in_class('<property name="p" type="SSTR"/>'), "f:3: property 'p': unknown type 'SSTR'; did you mean 'sstr'?"),
    (in_class('<property name="p" type="count32"/>'), "f:3: property 'p': type 'count32' is for statistics only"),
    (
        in_class('<method name="m"><arg name="a" type="mma32"/></method>'),
        "f:3: arg 'a': type 'mma32' is for statistics only",
    ),
    (
        in_class('<property name="2nd" type="bool"/>'),
        "f:3: property '2nd': a name is a letter followed by letters, digits and underscores",
    ),
    (
        in_class('<property name="a-b" type="bool"/>'),
        "f:3: property 'a-b': a name is a letter followed by letters, digits and underscores",
    ),
    (
        in_class('<property name="größe" type="bool"/>'),
        "f:3: property 'größe': a name is a letter followed by letters, digits and underscores",
    ),
    (
        in_class('<property name="a&#10;b" type="bool"/>'),
        "f:3: property 'a\\nb': a name is a letter followed by letters, digits and underscores",
    ),
    (
        in_class(f'<property name="{"n" * 249}" type="bool"/>'),
        f"f:3: property '{'n' * 57}...': a name has at most 248 characters",
    ),
    (
        in_schema('<class name=""/>'),
        "f:2: class '': a name is a letter followed by letters, digits and underscores",
    ),
    (
        in_class('<property name="p" type="bool" index="maybe"/>'),
        "f:3: property 'p': index must be y or n (or true, false, 1, 0), not 'maybe'",
    ),
    (
        in_class('<property name="p" type="bool" access="rw"/>'),
        "f:3: property 'p': access must be one of RC, RW, RO, not 'rw'; did you mean 'RW'?",
    ),
    (
        in_class('<method name="m"><arg name="a" type="bool" dir="in"/></method>'),
        "f:3: arg 'a': dir must be one of I, O, IO, not 'in'; did you mean 'I'?",
    ),
    (
        in_schema('<event name="e" sev="warning"/>'),
        "f:2: event 'e': sev must be one of emerg, alert, crit, error, warn, notice, inform, debug, not 'warning'; "
        "did you mean 'warn'?",
    ),
    (
        in_class('<statistic name="s" type="bool" access="RW"/>'),
        "f:3: statistic 's': a statistic cannot be set, so its access can only be RO",
    ),
    (in_class('<statistic name="s" type="bool" optional="y"/>'), "f:3: statistic 's': optional is for properties only"),
    (in_class('<statistic name="s" type="bool" index="1"/>'), "f:3: statistic 's': index is for properties only"),
]

BOUNDS = [
    (in_class('<property name="p" type="uint8" min="9" max="3"/>'), "f:3: property 'p': min 9 is above max 3"),
    (
        in_class('<property name="p" type="uint8" max="256"/>'),
        "f:3: property 'p': max 256 is outside the range of uint8, 0 to 255",
    ),
    (
        in_class('<property name="p" type="int8" min="-0x81"/>'),
        "f:3: property 'p': min -129 is outside the range of int8, -128 to 127",
    ),
    (
        in_class('<statistic name="s" type="hilo16" max="65536"/>'),
        "f:3: statistic 's': max 65536 is outside the range of hilo16, 0 to 65535",
    ),
    (in_class('<property name="p" type="uint8" min="few"/>'), "f:3: property 'p': min is 'few', not a whole number"),
    (in_class('<property name="p" type="uint8" min="1.5"/>'), "f:3: property 'p': min is '1.5', not a whole number"),
    (in_class('<property name="p" type="uint8" min="1_0"/>'), "f:3: property 'p': min is '1_0', not a whole number"),
    (in_class('<property name="p" type="float" min="x"/>'), "f:3: property 'p': min is 'x', not a number"),
    (
        in_class('<property name="p" type="float" min="nan"/>'),
        "f:3: property 'p': min must not be NaN",
    ),
    (in_class('<property name="p" type="sstr" min="1"/>'), "f:3: property 'p': min is for numbers only, not for sstr"),
    (in_class('<property name="p" type="bool" max="1"/>'), "f:3: property 'p': max is for numbers only, not for bool"),
    (
        in_class('<property name="p" type="uint8" maxLen="1"/>'),
        "f:3: property 'p': maxLen is for strings only, not for uint8",
    ),
    (
        in_class('<property name="p" type="sstr" maxLen="256"/>'),
        "f:3: property 'p': maxLen must be 1 to 255 for sstr, not 256",
    ),
    (
        in_class('<property name="p" type="lstr" maxlen="65536"/>'),
        "f:3: property 'p': maxLen must be 1 to 65535 for lstr, not 65536",
    ),
    (
        in_class('<property name="p" type="lstr" maxlen="0"/>'),
        "f:3: property 'p': maxLen must be 1 to 65535 for lstr, not 0",
    ),
    (in_class('<property name="p" type="sstr" maxLen="x"/>'), "f:3: property 'p': maxLen is 'x', not a whole number"),
    (
        in_class('<property name="p" type="sstr" maxLen="1" maxlen="1"/>'),
        "f:3: property 'p': maxLen and maxlen are the same attribute; give one",
    ),
]

REFERENCES = [
    (
        in_class('<property name="p" type="objId"/>'),
        "f:3: property 'p': an objId needs references (or isGeneralReference for any class)",
    ),
    (
        in_class('<statistic name="s" type="objId" isGeneralReference="n"/>'),
        "f:3: statistic 's': an objId needs references (or isGeneralReference for any class)",
    ),
    (
        in_class('<property name="p" type="objId" references="Thign"/>'),
        "f:3: property 'p': references unknown class 'Thign'; did you mean 'Thing'?",
    ),
    (
        in_class('<property name="p" type="objId" references="thing"/>'),
        "f:3: property 'p': references unknown class 'thing'; did you mean 'Thing'?",
    ),
    (
        in_class('<property name="p" type="objId" references="org.example:Nothing"/>'),
        "f:3: property 'p': references unknown class 'Nothing'; did you mean 'Thing'?",
    ),
    (
        in_class('<property name="p" type="objId" references="a:b:c"/>'),
        "f:3: property 'p': references 'a:b:c' is not a class or package:class",
    ),
    (
        in_class('<property name="p" type="objId" references=""/>'),
        "f:3: property 'p': references '' is not a class or package:class",
    ),
    (
        in_class('<method name="m"><arg name="a" type="objId" references="Xyz"/></method>'),
        "f:3: arg 'a': references unknown class 'Xyz'",
    ),
    (
        in_class('<property name="p" type="sstr" references="Other"/>'),
        "f:3: property 'p': references is for objId only, not for sstr",
    ),
    (
        in_class('<property name="p" type="sstr" isGeneralReference="y"/>'),
        "f:3: property 'p': isGeneralReference is for objId only, not for sstr",
    ),
    (
        in_class('<property name="p" type="sstr" parentRef="y"/>'),
        "f:3: property 'p': parentRef is for objId only, not for sstr",
    ),
    (
        in_class(
            '<property name="p" type="objId" references="Other" parentRef="y"/>\n'
            '<property name="q" type="objId" references="Other" parentRef="y"/>'
        ),
        "f:4: property 'q': a class has one parentRef, which is in line 3",
    ),
    (
        in_class('<property name="p" type="bool" index="y" optional="y"/>'),
        "f:3: property 'p': cannot be both index and optional: a key is always whole",
    ),
]

DEFAULTS = [
    ("uint8", "300", "must be 0 to 255"),
    ("uint8", "0x1FF", "must be 0 to 255"),
    ("uint8", "", "not a whole number"),
    ("int32", "1e3", "not a whole number"),
    ("bool", "maybe", "neither true nor false"),
    ("double", "x", "not a number"),
    ("double", "1e999", "too large for a number"),
    ("float", "1e300", "is too large for 32 bits"),
    ("uuid", "1-2-3", "not a uuid"),
    ("map", "x", "not JSON"),
    ("map", "[1]", "not a JSON object"),
    ("list", "{}", "not a JSON array"),
    ("objId", "x", "an object id cannot be written as text"),
    ("sstr", "x" * 256, "must be at most 255 bytes long"),
]

NAMES = [
    (in_schema('<class name="A"/>\n<class name="A"/>'), "f:3: class 'A': already defined in line 2"),
    (
        in_schema('<class name="Queue"/>\n<class name="queue"/>'),
        "f:3: class 'queue': equal to class 'Queue' on the wire, which is in lower case, defined in line 2",
    ),
    (in_schema('<event name="e"/>\n<event name="e"/>'), "f:3: event 'e': already defined in line 2"),
    (
        in_class('<property name="p" type="bool"/>\n<property name="p" type="bool"/>'),
        "f:4: property 'p': already defined in line 3",
    ),
    (
        in_class('<property name="p" type="bool"/>\n<statistic name="p" type="bool"/>'),
        "f:4: statistic 'p': already defined in line 3",
    ),
    (
        in_class('<statistic name="x" type="hilo8"/>\n<property name="xHigh" type="bool"/>'),
        "f:4: property 'xHigh': its wire name 'xHigh' is also one of statistic 'x' in line 3",
    ),
    (
        in_class('<statistic name="xAvg" type="uint8"/>\n<statistic name="x" type="mma32"/>'),
        "f:4: statistic 'x': its wire name 'xAvg' is also one of statistic 'xAvg' in line 3",
    ),
    (
        in_class('<statistic name="x" type="mma32"/>\n<statistic name="xSamples" type="uint8"/>'),
        "f:4: statistic 'xSamples': its wire name 'xSamples' is also one of statistic 'x' in line 3",
    ),
    (in_class('<method name="m"/>\n<method name="m"/>'), "f:4: method 'm': already defined in line 3"),
    (
        in_class('<method name="m">\n<arg name="a" type="bool"/>\n<arg name="a" type="bool" dir="O"/>\n</method>'),
        "f:5: arg 'a': already defined in line 4",
    ),
    (
        in_schema(
            '<eventArguments><arg name="a" type="bool"/></eventArguments>\n'
            '<eventArguments><arg name="a" type="bool"/></eventArguments>'
        ),
        "f:3: arg 'a': already defined in line 2",
    ),
]

EVENTS = [
    (
        in_schema('<eventArguments><arg name="user" type="sstr"/></eventArguments>\n<event name="e" args="usr"/>'),
        "f:3: event 'e': unknown argument 'usr'; did you mean 'user'?",
    ),
    (
        in_schema('<eventArguments><arg name="a" type="sstr"/></eventArguments>\n<event name="e" args="a, a"/>'),
        "f:3: event 'e': argument 'a' is named twice",
    ),
    (
        in_schema('<eventArguments><arg name="a" type="sstr"/></eventArguments>\n<event name="e" args="a,"/>'),
        "f:3: event 'e': empty name in args 'a,'",
    ),
    (
        in_schema('<eventArguments><arg name="a" type="sstr" dir="O"/></eventArguments>'),
        "f:2: arg 'a': the direction of an event's argument can only be I",
    ),
]

ASSIGN = [
    ('assign="b - c"', "assign names 'c', which is not a statistic of class 'Thing'"),
    ('assign="bb"', "assign names 'bb', which is not a statistic of class 'Thing'; did you mean 'b'?"),
    ('assign="b *  b"', "assign names 'b *  b', which is not a statistic of class 'Thing'"),
    ('assign="b -"', "assign 'b -' must be names joined by + and -"),
    ('assign=""', "assign '' must be names joined by + and -"),
    ('assign="a + b"', "assign names 'a', which has assign itself"),
    ('assign="text"', "assign names 'text', which is not a plain number"),
    ('assign="many"', "assign names 'many', which is not a plain number"),
]

GROUPS = [
    (in_class('<group use="gorup"/>'), "f:3: unknown group 'gorup'"),
    (in_class("<group/>"), "f:3: group: name the group by either use or name"),
    (in_class('<group use="a" name="b"/>'), "f:3: group 'b': name the group by either use or name"),
    (in_schema('<group name="g"/>\n<group name="g"/>'), "f:3: group 'g': already defined in line 2"),
    (in_schema("<group/>"), "f:2: group: attribute 'name' is missing"),
    (
        in_schema(
            '<group name="common">\n<group use="comon"/>\n</group>\n<class name="A"><group use="common"/></class>'
        ),
        "f:3: unknown group 'comon'; did you mean 'common'?",
    ),
    (
        in_schema('<group name="g">\n<group use="g"/>\n</group>\n<class name="A"><group use="g"/></class>'),
        "f:3: group 'g' uses itself: g -> g",
    ),
    (
        in_schema(
            '<group name="a">\n<group use="b"/>\n</group>\n<group name="b">\n<group use="a"/>\n</group>\n'
            '<class name="A"><group use="b"/></class>'
        ),
        "f:6: group 'a' uses itself: a -> b -> a",
    ),
    (
        in_schema(
            '<group name="g"><property name="p" type="bool"/></group>\n'
            '<class name="A">\n<property name="p" type="bool"/>\n<group use="g"/>\n</class>'
        ),
        "f:5: property 'p' (of group 'g'): already defined in line 4",
    ),
    (
        in_schema(
            '<group name="g">\n<property name="p" type="bool"/>\n<property name="p" type="bool"/>\n</group>\n'
            '<class name="A"><group use="g"/></class>\n<class name="B"><group use="g"/></class>'
        ),
        "f:4: property 'p': already defined in line 3",
    ),
    (
        in_schema(
            '<group name="g">\n<property name="p" type="uint7"/>\n</group>\n'
            '<class name="A"><group use="g"/></class>\n<class name="B"><group use="g"/></class>'
        ),
        "f:3: property 'p': unknown type 'uint7'; did you mean 'uint8'?",
    ),
    (
        in_schema('<group name="g"/>\n<class name="A">\n<group use="g"/>\n<group use="g"/>\n</class>'),
        "f:5: brings group 'g' for the second time",
    ),
    (
        in_schema('<group name="unused">\n<property name="p" type="objId" references="X"/>\n</group>'),
        "f:3: property 'p': references unknown class 'X'",
    ),
]

ONE_FAULT = [*ROOTS, *STRUCTURE, *VALUES, *BOUNDS, *REFERENCES, *NAMES, *EVENTS, *GROUPS]


@pytest.mark.parametrize(("text", "message"), ONE_FAULT)
def test_one_fault(text: str, message: str) -> None:
    assert faults(text) == [message]


@pytest.mark.parametrize(("type_name", "default", "reason"), DEFAULTS)
def test_bad_default(type_name: str, default: str, reason: str) -> None:
    text = in_class(f'<method name="m">\n<arg name="a" type="{type_name}" default="{default}"/>\n</method>')
    shown = default if len(default) <= 60 else default[:57] + "..."
    assert faults(text) == [f"f:4: arg 'a': default '{shown}' is not a valid {type_name}: {reason}"]


def test_a_default_is_within_the_bounds() -> None:
    text = in_class('<method name="m"><arg name="a" type="uint8" min="1" max="9" default="10"/></method>')
    assert faults(text) == ["f:3: arg 'a': default '10' is not a valid uint8: must be 1 to 9"]


def test_an_output_has_no_default() -> None:
    text = in_class('<method name="m"><arg name="a" type="uint8" dir="O" default="1"/></method>')
    assert faults(text) == ["f:3: arg 'a': an output argument has no default"]


@pytest.mark.parametrize(("assign", "message"), ASSIGN)
def test_bad_assign(assign: str, message: str) -> None:
    others = (
        '<statistic name="b" type="count64"/><statistic name="text" type="sstr"/><statistic name="many" type="mma32"/>'
    )
    text = in_class(f'<statistic name="a" type="count64" {assign}/>\n{others}')
    assert faults(text) == [f"f:3: statistic 'a': {message}"]


def test_assign_needs_a_number() -> None:
    text = in_class('<statistic name="a" type="sstr" assign="b"/>\n<statistic name="b" type="count64"/>')
    assert faults(text) == ["f:3: statistic 'a': assign is only for counters and other plain numbers"]


def test_all_faults_at_once_in_file_order() -> None:
    text = """<schema package="org example">
      <class name="Queue">
        <property name="depth" type="uint7"/>
        <propetry name="x"/>
        <property name="limit" type="uint8" min="9" max="3" optional="y"
                  index="y"/>
        <statistic name="busy" type="count64" assign="a - b"/>
        <group use="nothing"/>
      </class>
      <banana/>
      <class name="QUEUE"/>
      <event name="full" sev="bad" args="who"/>
    </schema>"""
    assert faults(text) == [
        "f:1: schema: package 'org example' must be names joined by dots, e.g. 'org.example.app'",
        "f:3: property 'depth': unknown type 'uint7'; did you mean 'uint8'?",
        "f:4: unexpected element 'propetry' in class 'Queue'; did you mean 'property'?",
        "f:5: property 'limit': min 9 is above max 3",
        "f:5: property 'limit': cannot be both index and optional: a key is always whole",
        "f:7: statistic 'busy': assign names 'a', which is not a statistic of class 'Queue'",
        "f:7: statistic 'busy': assign names 'b', which is not a statistic of class 'Queue'",
        "f:8: unknown group 'nothing'",
        "f:10: unexpected element 'banana' in schema",
        "f:11: class 'QUEUE': equal to class 'Queue' on the wire, which is in lower case, defined in line 2",
        "f:12: event 'full': sev must be one of emerg, alert, crit, error, warn, notice, inform, debug, not 'bad'",
        "f:12: event 'full': unknown argument 'who'",
    ]


def test_the_file_is_named_as_given(tmp_path: Path) -> None:
    path = tmp_path / "bad.xml"
    path.write_text("<nothing/>")
    with pytest.raises(SchemaError) as caught:
        read_schema(path)
    assert caught.value.problems == (SchemaProblem(str(path), 1, "the root element is 'nothing', not 'schema'"),)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_schema(tmp_path / "missing.xml")
