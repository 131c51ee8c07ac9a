"""What conditions mean: here, and to agents."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from views.conditions.shelves import NOON, TYPES_OF, Shelf, compiled, find, passing

from qmf.errors import NotFoundError
from qmf.protocol import matches
from qmf.views.conditions import ConditionError, compile_filter, parse_condition

MINUTE = 60_000_000_000

SHELVES: list[Shelf] = [
    {
        "name": "a/1",
        "open": True,
        "sold": 0,
        "limit": 1000,
        "price": 1.5,
        "load": 80,
        "built": NOON,
        "age": MINUTE,
        "waiting": 2.5,
        "storeRef": "org.x:store:main",
        "options": {},
        "anything": 5,
    },
    {
        "name": "b/2",
        "label": "Orders",
        "open": False,
        "sold": 10,
        "limit": 1024,
        "price": 2.0,
        "load": 5,
        "built": NOON + 86400 * 1_000_000_000,
        "age": 3 * MINUTE,
        "waiting": 6,
        "storeRef": "org.x:store:main,2",
        "options": {"ro": True},
        "anything": "Five",
    },
    {"name": "c/3", "sold": 20, "anything": True},
]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", "abc"),
        # words
        ("orders", "b"),
        ("ORDERS", "b"),
        ("open", ""),
        ("-orders", "ac"),
        ("not orders", "ac"),
        ("/ -orders -c", "a"),
        ("'sold>5'", ""),
        ("'or'", "b"),
        # joined
        ("/ orders", "b"),
        ("sold>5 sold<15", "b"),
        ("sold>5 and sold<15", "b"),
        ("sold>5 or sold=0", "abc"),
        ("sold=0 or sold=10 open=no", "ab"),
        ("(sold=0 or sold=10) open=no", "b"),
        ("not open=yes", "bc"),
        ("not (sold>5 label~O)", "ac"),
        # numbers
        ("sold > 5", "bc"),
        ("sold==10", "b"),
        ("sold = 0xA", "b"),
        ("limit>=1Ki", "b"),
        ("limit>=1ki", "b"),
        ("limit=1k", "a"),
        ("limit>1e3", "b"),
        ("limit>1000.5", "b"),
        ("sold>0.0015k", "bc"),
        ("price=2", "b"),
        ("price>1.5", "b"),
        ("load>50%", "a"),
        ("sold~1", "b"),
        ("SOLD>5", "bc"),
        ("waiting>5", "b"),
        ("waiting=2.5", "a"),
        # booleans
        ("open=true", "a"),
        ("open=0", "b"),
        ("open!=YES", "bc"),
        ("open~tru", "a"),
        # texts
        ("name=A/1", "a"),
        ("name==A/1", ""),
        ("name==a/1", "a"),
        ("name<b", "a"),
        ("label=orders", "b"),
        ("label~^Ord", "b"),
        ("label~(Ord|x)", "b"),
        # what is missing
        ("label!=orders", "ac"),
        ("label!=x", "abc"),
        ("label!~x", "abc"),
        ("not label~Ord", "ac"),
        ("has label", "b"),
        ("has open", "a"),
        ("has sold", "bc"),
        ("not has sold", "a"),
        ("has options", "b"),
        ("sold<100 price<100", "ab"),
        # references
        ("storeRef=main", "a"),
        ("storeref=STORE:main", "a"),
        ("storeRef=org.x:store:main", "a"),
        ("storeRef=ain", ""),
        ("storeRef==main", ""),
        ("storeRef!=main", "bc"),
        ("storeRef~main", "ab"),
        # times and durations
        ("built=2024-05-01T12:00:00+00:00", "a"),
        ("built>2024-05-01T12:00:00Z", "b"),
        (f"built={NOON}", "a"),
        ("built>5m", ""),
        ("built<5m", "ab"),
        ("age>1m", "b"),
        ("age>=60s", "ab"),
        ("age>'1m 30s'", "b"),
        # values of unknown types
        ("anything=5", "a"),
        ("anything=five", "b"),
        ("anything=yes", "c"),
        ("anything>4", "ab"),
        ("anything>A", "b"),
    ],
)
def test_meanings(text: str, names: str) -> None:
    assert "".join(str(item["name"])[0] for item in passing(text, SHELVES)) == names


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("open=maybe", "'maybe' is not a value of open: neither true nor false"),
        ("open>false", "open is true or false: compare it with = or !="),
        ("storeRef>x", "storeRef is a reference: compare it with =, != or ~"),
        ("sold>many", "'many' is not a value of sold: not a number"),
        ("sold>1%", "'1%' is not a value of sold: not a number"),
        ("sold>5m", "'5m' is not a value of sold"),
        ("sold>" + 5000 * "9", "not a number"),
        ("sold>0x" + 5000 * "g", "not a number"),
        ("built>yesterday", "'yesterday' is not a value of built: not a time, such as 2024-05-01"),
        ("built>0001-01-01", "not a time"),
        ("name~(", "'(' is not a regular expression"),
    ],
)
def test_what_is_no_value(text: str, part: str) -> None:
    with pytest.raises(ConditionError) as caught:
        compiled(text)
    assert part in str(caught.value)


@pytest.mark.parametrize("text", ["slod=5", "slod~5", "has slod", "not (slod>5)"])
def test_an_operator_always_compares_a_value(text: str) -> None:
    with pytest.raises(NotFoundError, match="no value of shelf 'slod'; did you mean sold"):
        compiled(text)


def test_a_duration_ends_at_the_present_moment() -> None:
    test = compiled("built>5m").test
    assert test is not None
    now = time.time_ns()
    assert [test({"built": now - age * MINUTE}) for age in (4, 6)] == [True, False]


def test_a_caller_may_read_values_itself() -> None:
    levels = {"high": 1, "low": 3}
    field = find("anything")
    level = type(field)(name="level", read=lambda item: item, parse=levels.get, reverse=True)
    for text, passed in {"level=high": [1], "level>=low": [1, 2, 3], "level>low": [1, 2], "level!=low": [1, 2]}.items():
        test = compile_filter(parse_condition(text), lambda _: level, str).test
        assert test is not None
        assert list(filter(test, (1, 2, 3))) == passed, text


@pytest.mark.parametrize(
    ("text", "predicate"),
    [
        ("sold > 5", ["gt", "sold", ["quote", 5]]),
        ("SOLD = 0xA", ["eq", "sold", ["quote", 10]]),
        ("age < 1m", ["lt", "age", ["quote", MINUTE]]),
        ("open = yes", ["eq", "open", ["quote", True]]),
        ("name == a", ["eq", "name", ["quote", "a"]]),
        (f"built >= {NOON}", ["ge", "built", ["quote", NOON]]),
        ("has sold", ["ne", "sold", ["quote", 0]]),
        ("has name", ["ne", "name", ["quote", ""]]),
        ("has open", ["eq", "open", ["quote", True]]),
        ("sold>1 sold<5", ["and", ["gt", "sold", ["quote", 1]], ["lt", "sold", ["quote", 5]]]),
        ("sold=1 or limit=5", ["or", ["eq", "sold", ["quote", 1]], ["eq", "limit", ["quote", 5]]]),
        # Only in part the same to agents.
        ("orders sold>1 name~x storeRef=y", ["gt", "sold", ["quote", 1]]),
        # Not the same to agents.
        ("orders", []),
        ("name = a", []),
        ("name ~ a", []),
        ("name < a", []),
        ("sold != 1", []),
        ("sold ~ 1", []),
        ("sold > 1.5", []),
        ("sold < 1e30", []),
        ("price > 1", []),
        ("built > 5m", []),
        ("not sold > 1", []),
        ("sold > 1 or orders", []),
        ("storeRef = x", []),
        ("has options", []),
        ("anything = 1", []),
    ],
)
def test_predicates(text: str, predicate: list[object]) -> None:
    assert compiled(text).predicate == predicate


def test_agents_accept_the_predicate_of_a_deep_condition() -> None:
    text = "sold=1"
    for _ in range(25):
        text = f"(sold=2 or limit=1 {text})"
    assert matches(compiled(text).predicate, {"sold": 1, "limit": 1})


_VALUES: dict[str | None, st.SearchStrategy[object]] = {
    "sstr": st.sampled_from(["", "a", "A", "0", "False", "b/1"]),
    "lstr": st.sampled_from(["", "Orders", "orders", "5"]),
    "bool": st.booleans(),
    "uint32": st.integers(0, 3),
    "int64": st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    "double": st.floats(allow_nan=False) | st.sampled_from([0.0, -0.0, 1.0, 1.5]),
    "uint8": st.integers(0, 3),
    "absTime": st.sampled_from([0, NOON, NOON + 1]),
    "deltaTime": st.sampled_from([0, MINUTE]),
    "mma32": st.sampled_from([0, 1, 1.5]),
    "objId": st.sampled_from(["p:c:x", "p:c:y"]),
    "map": st.sampled_from([{}, {"a": 1}]),
    None: st.none(),
}
_LITERALS = st.sampled_from(
    ["0", "1", "-1", "1.5", "2k", "a", "A", "orders", "true", "no", "False", "1m", str(NOON), "2024-05-01", "''", "x"]
)
_NAMES = st.sampled_from(list(TYPES_OF))
_SHELVES = st.fixed_dictionaries({}, optional={name: _VALUES[kind] for name, kind in TYPES_OF.items()})
_COMPARISONS = st.builds(
    "{}{}{}".format,
    _NAMES,
    st.sampled_from(["=", "==", "!=", "<", "<=", ">", ">=", "~", "!~"]),
    _LITERALS,
)
_FACTORS = _COMPARISONS | _NAMES.map("has {}".format) | st.sampled_from(["orders", "-a"])
_CONDITIONS = st.recursive(
    _FACTORS,
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' or '.join(parts)})")
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({' '.join(parts)})")
        | inner.map("not {}".format)
    ),
    max_leaves=6,
)


@given(_CONDITIONS, st.lists(_SHELVES, max_size=8))
@example("has price", [{"price": -0.0}])
def test_agents_answer_whatever_passes_here(text: str, shelves: list[Shelf]) -> None:
    try:
        found = compiled(text)
    except ConditionError:
        return
    passed = passing(text, shelves)
    assert [item for item in shelves if matches(found.predicate, item) and item in passed] == passed


@pytest.mark.parametrize("text", ["sold>5", "sold<=10 open=no", "name==c/3 or load>50%", "has label", "age>=60s"])
def test_a_predicate_alone_is_the_condition(text: str) -> None:
    assert [item for item in SHELVES if matches(compiled(text).predicate, item)] == passing(text, SHELVES)
