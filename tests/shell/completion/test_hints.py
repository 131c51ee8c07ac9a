"""The hints in the toolbar while a line is typed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.commands import standard
from qmf_shell.completion.data import CompletionData
from qmf_shell.completion.hints import hint_for
from qmf_shell.session.backend import ConnectionStatus
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameSnapshot
from qmf_shell.session.short_ids import ShortIds
from shell.fakes import SCHEMAS, FakeBackend, filesystem


def known_data() -> CompletionData:
    """Two filesystems, of which / has the short id 101, and an alias."""
    ids = ShortIds()
    ids.assign(filesystem("/").identity)
    snapshot = NameSnapshot(dict(SCHEMAS), (filesystem("/").identity, filesystem("/home").identity))
    return CompletionData(snapshot, ids, standard(), (("fs", "list filesystem"),))


DATA = known_data()


def hint_texts(text: str) -> tuple[str, str]:
    """The whole hint, and the part that is marked."""
    hints = hint_for(text, DATA)
    return "".join(item.text for item in hints), "".join(item.text for item in hints if item.now)


@pytest.mark.parametrize(
    ("text", "whole", "now"),
    [
        ("", "", ""),
        ("nosuch", "", ""),
        ("# list", "", ""),
        ("show", "show ID...  Show all values of an object", "show ID..."),
        ("fs ", "list [CLASS]  List classes, objects of a class, or objects in full", "list [CLASS]"),
        (
            "call 101 echo ",
            "echo sequence:uint32(in/out) body:lstr(in/out)  uint32, in/out: Any number",
            "sequence:uint32(in/out)",
        ),
        (
            "call 101 echo 7 ",
            "echo sequence:uint32(in/out) body:lstr(in/out)  lstr, in/out: Any text",
            "body:lstr(in/out)",
        ),
        ("call 101 echo 7 x ", "echo sequence:uint32(in/out) body:lstr(in/out)  complete", ""),
        (
            "call / configure {} force=",
            "configure options:map [force:bool=false] [like:objId=]  bool, default false",
            "[force:bool=false]",
        ),
        ("call process:1 sig", "call [-y] [-n] ID METHOD [ARGS]  Call a method on an object, or on many", ""),
        ("call 101 ec", "echo sequence:uint32(in/out) body:lstr(in/out)  Send back what it gets", ""),
        ("call filesystem all conf", "configure options:map [force:bool=false] [like:objId=]  3 arguments", ""),
        ("list filesystem where byt", "bytesRead  count64, octet: Bytes read", "bytesRead"),
        ("list filesystem where threshold > ", "threshold  uint8, percent", "threshold"),
        ("setprop 101 thr", "threshold=  uint8, percent, 1 to 100", "threshold="),
        ("setprop 101 threshold=7", "threshold  uint8, percent, 1 to 100", "threshold"),
        ("set pager ", "pager  whether output longer than the terminal goes through a pager", "pager"),
        ("events -n ", "COUNT  how many to show; 0 means all", "COUNT"),
        ("list --ac", "--active  leave out destroyed and lost objects", "--active"),
        ("watch -", "-n, --interval SECONDS  -c, --count COUNT  -e, --exact  --all  -r, --rates  -p, --plain", ""),
    ],
)
def test_hints(text: str, whole: str, now: str) -> None:
    found = hint_texts(text)
    assert found[0] == whole
    if now:
        assert found[1] == now


@given(st.text(max_size=30), st.sampled_from(["", "call 101 ", "call 101 echo ", "list filesystem where ", "set "]))
def test_any_line_has_a_hint_or_none(text: str, front: str) -> None:
    assert all(isinstance(item.text, str) for item in hint_for(front + text, DATA))


def test_the_toolbar_shows_the_hint_unless_the_connection_is_lost(context: Context, backend: FakeBackend) -> None:
    from qmf_shell.modes.repl import toolbar

    def text() -> str:
        return "".join(part[1] for part in toolbar(context, hint_for("call 101 echo ", DATA))).strip()

    assert text().startswith("echo sequence:uint32")
    narrow = "".join(part[1] for part in toolbar(context, hint_for("call 101 echo 7 ", DATA), 40))
    assert narrow.startswith(" body:lstr(in/out)  lstr, in/out")
    backend.status = ConnectionStatus("amqp://mq1", connected=False, reason="closed")
    assert text() == "amqp://mq1  not connected: closed"
