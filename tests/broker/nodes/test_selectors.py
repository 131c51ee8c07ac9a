"""Selectors choose messages as JMS says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.selectors import MAX_DEPTH, MAX_LENGTH, SelectorError, compile_selector
from qmf.codec.message import Message as AmqpMessage
from qmf.codec.message import Section, encode_message


def message() -> Message:
    data = encode_message(
        AmqpMessage(
            durable=True,
            priority=7,
            subject="news",
            message_id="id-1",
            application_properties={
                "n": 5,
                "f": 2.5,
                "text": "it's 100%",
                "yes": True,
                "$odd-name.x": 1,
                "digits": "5",
            },
            section=Section.DATA,
            body=b"",
        )
    )
    return read_message(data, 0.0)


@pytest.mark.parametrize(
    "selector",
    [
        "convert_string_expressions:digits > 4 AND digits = 5 AND digits <= n AND 4.5 < digits",
        "convert_string_expressions:digits BETWEEN 5 AND 6 AND digits = '5' AND digits IN ('5')",
        "n = 5",
        "n <> 6 and n >= 5 AND n <= 5.0",
        "n = 6 OR f = 2.5",
        "NOT n = 6",
        "not (n = 6 or n = 7)",
        "n + 1 = 6 AND n - 1 = 4 AND n * 2 = 10 AND n / 2 = 2.5",
        "-n = -5 AND +n = 5",
        "n = 2 + 6 / 2",
        "(2 + 3) * 2 = 10",
        "n BETWEEN 5 AND 6",
        "n NOT BETWEEN 6 AND 7",
        "text = 'it''s 100%'",
        "text LIKE 'it%'",
        "text LIKE '_t''s 100!%' ESCAPE '!'",
        "text NOT LIKE 'x%'",
        "text LIKE '%'",
        "text IN ('a', 'it''s 100%')",
        "text NOT IN ('a')",
        "missing IS NULL",
        "n IS NOT NULL",
        "yes",
        "yes = TRUE",
        "TRUE",
        "$odd-name.x = 1",
        "1e1 = 10 AND 1.5E+1 = 15 AND .5 = 0.5 AND 7L = 7",
        "JMSPriority = 7 AND JMSType = 'news' AND JMSMessageID = 'id-1'",
        "JMSDeliveryMode = 'PERSISTENT' AND JMSRedelivered = FALSE",
        "amqp.subject = 'news' AND amqp.priority > 5",
    ],
)
def test_selected(selector: str) -> None:
    assert compile_selector(selector)(message())


@pytest.mark.parametrize(
    "selector",
    [
        "digits > 4",
        "digits = 5",
        "convert_string_expressions:text > 4",
        "n = 6",
        "FALSE",
        "missing = 1",
        "missing <> 1",
        "NOT missing = 1",
        "missing > 0 OR FALSE",
        "text > 'a'",
        "text = 5",
        "n = '5'",
        "n / 0 = 1",
        "n / 0 <> 1",
        "text + 1 = 2",
        "n LIKE '5'",
        "n IN ('5')",
        "text LIKE 'it'",
        "text LIKE '%x%'",
        "n",
        "text",
    ],
)
def test_not_selected(selector: str) -> None:
    assert not compile_selector(selector)(message())


@pytest.mark.parametrize(
    ("selector", "fault"),
    [
        ("", "character 1: expected a value, found the end"),
        ("n =", "character 4: expected a value, found the end"),
        ("n = 5 5", "character 7: expected the end, found '5'"),
        ("(n = 5", "expected ), found the end"),
        ("n ~ 5", "character 3: '~' is not expected"),
        ("n IS 5", "expected NULL, found '5'"),
        ("n NOT 5", "expected BETWEEN, IN or LIKE"),
        ("n BETWEEN 1 OR 2", "expected AND, found 'OR'"),
        ("n IN (1)", "expected a string, found '1'"),
        ("n LIKE 'a' ESCAPE 'ab'", "ESCAPE needs one character, not 'ab'"),
        ("'open", "is not expected"),
        ("AND", "expected a value, found 'AND'"),
        ("(" * (MAX_DEPTH + 1) + "n", f"nested {MAX_DEPTH} deep"),
        ("-" * (MAX_DEPTH + 1) + "n", f"nested {MAX_DEPTH} deep"),
        ("NOT " * (MAX_DEPTH + 1) + "n", f"nested {MAX_DEPTH} deep"),
        ("n" * (MAX_LENGTH + 1), f"may have {MAX_LENGTH} characters"),
    ],
)
def test_faults_name_the_place(selector: str, fault: str) -> None:
    with pytest.raises(SelectorError) as caught:
        compile_selector(selector)
    assert fault in str(caught.value)


@given(st.text(alphabet="n5 =<>()'%_+-*/.,ANDORTLIKEISU$", max_size=40))
def test_any_text_is_a_selector_or_a_fault(text: str) -> None:
    try:
        selector = compile_selector(text)
    except SelectorError:
        return
    assert selector(message()) in (True, False)


@given(st.text(alphabet="ab", max_size=12), st.text(alphabet="ab%_", max_size=8))
def test_like_matches_as_a_regular_expression_would(text: str, pattern: str) -> None:
    import re

    expected = re.fullmatch(pattern.replace("%", ".*").replace("_", "."), text) is not None
    data = encode_message(AmqpMessage(application_properties={"t": text}, section=Section.DATA, body=b""))
    assert compile_selector(f"t LIKE '{pattern}'")(read_message(data, 0.0)) is expected
