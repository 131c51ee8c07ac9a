"""From text to the kind of completion."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.commands import standard
from qmf_shell.commands.at import COMMANDS
from qmf_shell.completion.analysis import analyse
from qmf_shell.completion.kinds import (
    AnyOf,
    ArgumentNames,
    ArgumentValue,
    ClassNames,
    CommandNames,
    CompletionKind,
    EventValueNames,
    FileNames,
    Keywords,
    MethodNames,
    NoCompletion,
    ObjectNames,
    OptionNames,
    OptionValue,
    SettableNames,
    SettableValue,
    SettingNames,
    SettingValue,
    ValueNames,
    ValueOf,
)
from qmf_shell.completion.selection_analysis import SELECTION_WORDS
from qmf_shell.parsing.times import PERIOD_WORDS, TIME_WORDS

REGISTRY = standard()

LIST = REGISTRY.find("list")

EVENTS = REGISTRY.find("events")

NOT = Keywords((("not", "the opposite"), ("has", "the value is neither missing nor false, zero or empty")))

WHERE = Keywords(SELECTION_WORDS[:1])

EVENT_WORDS = Keywords((*SELECTION_WORDS[:1], *PERIOD_WORDS))

SPEED = ("speed", "seconds of the recording per second")

AT_COMMANDS = Keywords(tuple((name, REGISTRY.find(name).summary) for name in COMMANDS))

MANY = Keywords((SELECTION_WORDS[0], ("all", "all objects of the class")))

TARGET = AnyOf((ObjectNames(None), ClassNames(True, False)))

ALL_COLUMNS = Keywords((("all", "everything"),))


@pytest.mark.parametrize(
    ("text", "wanted", "prefix", "start"),
    [
        ("", CommandNames(), "", 0),
        ("  ", CommandNames(), "", 2),
        ("li", CommandNames(), "li", 0),
        ("help ", CommandNames(), "", 5),
        ("help ca", CommandNames(), "ca", 5),
        ("help call ", NoCompletion(), "", 0),
        ("list ", ClassNames(True, False), "", 5),
        ("list fi", ClassNames(True, False), "fi", 5),
        ("LIST fi", ClassNames(True, False), "fi", 5),
        ("schema fi", ClassNames(True, True), "fi", 7),
        ("events ", AnyOf((ClassNames(False, True), EVENT_WORDS)), "", 7),
        ("events -f fi", AnyOf((ClassNames(False, True), EVENT_WORDS)), "fi", 10),
        ("events -n ", OptionValue(EVENTS.options[2]), "", 10),
        ("events -n 5 ", AnyOf((ClassNames(False, True), EVENT_WORDS)), "", 12),
        ("events from ", Keywords(TIME_WORDS), "", 12),
        ("events full from yesterday 14:0", Keywords((PERIOD_WORDS[1], *SELECTION_WORDS[:1])), "14:0", 27),
        ("events from -10m ", Keywords((PERIOD_WORDS[1], *SELECTION_WORDS[:1])), "", 17),
        ("at ", Keywords(TIME_WORDS), "", 3),
        ("at yes", Keywords(TIME_WORDS), "yes", 3),
        ("at 14:05 li", AT_COMMANDS, "li", 9),
        ("at yesterday 14:05 li", AT_COMMANDS, "li", 19),
        ("at -10m list fi", ClassNames(True, False), "fi", 13),
        ("at -10m watch fi", NoCompletion(), "fi", 14),
        ("replay ", AnyOf((NoCompletion(), Keywords((*PERIOD_WORDS, SPEED)))), "", 7),
        ("replay from 13:00 sp", Keywords((PERIOD_WORDS[1], SPEED)), "sp", 18),
        ("replay from 13:00 speed ", NoCompletion(), "", 24),
        ("diff -10m ", Keywords(TIME_WORDS), "", 10),
        ("diff -10m now fi", TARGET, "fi", 14),
        ("diff 14:00 14:05 queue co", AnyOf((ObjectNames("queue"), Keywords(SELECTION_WORDS))), "co", 23),
        ("history que", ObjectNames(None), "que", 8),
        ("history orders ms", AnyOf((ValueNames("orders"), Keywords(PERIOD_WORDS))), "ms", 15),
        ("history orders msgDepth from ", Keywords(TIME_WORDS), "", 29),
        ("history orders msgDepth from 14:00 t", Keywords(PERIOD_WORDS[1:]), "t", 35),
        ("events a where b", AnyOf((EventValueNames(("a",)), NOT)), "b", 15),
        ("events -", OptionNames(EVENTS), "-", 7),
        ("list --a", OptionNames(LIST), "--a", 5),
        ("list -a ", ClassNames(True, False), "", 8),
        ("list filesystem ", AnyOf((ObjectNames("filesystem"), Keywords(SELECTION_WORDS))), "", 16),
        ("list filesystem / /h", AnyOf((ObjectNames("filesystem"), Keywords(SELECTION_WORDS))), "/h", 18),
        ("list fs where ", AnyOf((ValueNames("fs"), NOT)), "", 14),
        ("list fs where by", AnyOf((ValueNames("fs"), NOT)), "by", 14),
        ("list fs where (by", AnyOf((ValueNames("fs"), NOT)), "by", 15),
        ("list fs where has by", ValueNames("fs"), "by", 18),
        ("list fs where (a>5 or by", AnyOf((ValueNames("fs"), NOT)), "by", 22),
        ("list fs where not by", AnyOf((ValueNames("fs"), NOT)), "by", 18),
        ("list fs where a > ", ValueOf("fs", "a"), "", 18),
        ("list fs where a>5", ValueOf("fs", "a"), "5", 16),
        ("list fs where a > 5 and b", AnyOf((ValueNames("fs"), NOT)), "b", 24),
        ("list fs sort ", AnyOf((ValueNames("fs"), Keywords((("by", ""),)))), "", 13),
        ("list fs limit ", NoCompletion(), "", 14),
        ("list fs columns a,b", AnyOf((ValueNames("fs"), ALL_COLUMNS)), "b", 18),
        ("show ", TARGET, "", 5),
        ("show 101 '/a b", AnyOf((ObjectNames(None), Keywords(SELECTION_WORDS))), "/a b", 9),
        ("call ", TARGET, "", 5),
        ("call 101 ", AnyOf((MethodNames("101"), MANY)), "", 9),
        ("call -y 101 ", AnyOf((MethodNames("101"), MANY)), "", 12),
        ("call '/a b' ec", AnyOf((MethodNames("/a b"), MANY)), "ec", 12),
        ("call fs all ", MethodNames("fs"), "", 12),
        ("call fs all echo ", ArgumentNames("fs", "echo", (), 0), "", 17),
        ("call fs where a > 1 echo ", ArgumentNames("fs", "echo", (), 0), "", 25),
        ("call fs where a > 1 and b", AnyOf((ValueNames("fs"), NOT)), "b", 24),
        ("setprop 101 ", SettableNames("101", ()), "", 12),
        ("setprop 101 a=1 b=x", SettableValue("101", "b"), "x", 18),
        ("set ", SettingNames(), "", 4),
        ("set pager ", SettingValue("pager"), "", 10),
        ("record ", Keywords((("on", "start"), ("off", "stop"))), "", 7),
        ("record on x", FileNames(), "x", 10),
        ("export fs x", FileNames(), "x", 10),
        ("watch ", TARGET, "", 6),
        ("plot 101 ", ValueNames("101", True), "", 9),
        ("top fs b", AnyOf((Keywords((("by", "followed by a statistic"),)), ValueNames("fs", True))), "b", 7),
        ("top fs by b", ValueNames("fs", True), "b", 10),
        ("call 101 echo ", ArgumentNames("101", "echo", (), 0), "", 14),
        ("call 101 echo 7 ", ArgumentNames("101", "echo", (), 1), "", 16),
        ("call 101 echo body=x 7 ", ArgumentNames("101", "echo", ("body",), 1), "", 23),
        ("call 101 echo body=he", ArgumentValue("101", "echo", "body"), "he", 19),
        ("call 101 echo 'body=he", ArgumentNames("101", "echo", (), 0), "body=he", 14),
        ("call 101 configure {", NoCompletion(), "", 0),
        ("agents ", NoCompletion(), "", 0),
        ("nonsense ", NoCompletion(), "", 0),
        ("# list ", NoCompletion(), "", 0),
        ("show a\\", NoCompletion(), "", 0),
    ],
)
def test_kinds(text: str, wanted: CompletionKind, prefix: str, start: int) -> None:
    question = analyse(text, REGISTRY)
    assert (question.kind, question.prefix, question.start) == (wanted, prefix, start)


@given(st.text(max_size=40))
def test_any_text_has_a_kind(text: str) -> None:
    for line in (text, f"call 101 {text}", f"call fs where {text}", f"list {text}", f"list fs where {text}"):
        assert 0 <= analyse(line, REGISTRY).start <= len(line)
