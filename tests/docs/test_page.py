"""The room's own parts: pages are read as blocks with marks, and outputs compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.compare import Expected
from docs.page import MARKS, ROOT, PageError, blocks, commands, lines, refresh

PAGE = """Text.

<!-- varies: numbers, vda -->
<!-- run: one -->
<!-- run: two -->
```console
$ first &
$ second
a 12
...
qmf> list
b
```

```sh
# A comment
one --option \\
  two
three
```
"""


def page(folder: Path, text: str) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("docs.page.ROOT", tmp_path)
    return tmp_path


def test_a_page_is_blocks_with_marks(here: Path) -> None:
    session, script = blocks(page(here, PAGE))
    assert (session.language, session.where) == ("console", "page.md:6")
    assert session.marks == (("varies", "numbers, vda"), ("run", "one"), ("run", "two"))
    assert [(item.line, item.prompt, item.text, item.expected) for item in commands(session)] == [
        (7, "$", "first &", Expected("", ("numbers", "vda"), line=8)),
        (8, "$", "second", Expected("a 12\n...\n", ("numbers", "vda"), line=9)),
        (11, "qmf>", "list", Expected("b\n", ("numbers", "vda"), line=12)),
    ]
    assert script.marks == ()
    last = Expected("x")
    assert [(item.line, item.text, item.expected) for item in lines(script, last)] == [
        (18, "one --option   two", None),
        (19, "three", last),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n```sh\nx\n", "page.md:2: the block has no end"),
        ("<!-- vary: x -->\n```sh\n```\n", "page.md:1: no such mark: 'vary'"),
        ("<!-- file: x -->\n\n```sh\n```\n", "page.md:2: a mark stands directly in front of a block"),
    ],
)
def test_what_is_wrong_with_a_page(here: Path, text: str, message: str) -> None:
    with pytest.raises(PageError, match=f"^{message}$"):
        blocks(page(here, text))


def test_a_session_begins_with_a_command(here: Path) -> None:
    (block,) = blocks(page(here, "```console\nx\n$ y\n```\n"))
    with pytest.raises(PageError, match=r"^page\.md:1: a session begins with a command$"):
        commands(block)


@pytest.mark.parametrize(
    ("shown", "printed", "varies"),
    [
        ("a\nb\n", "a  \nb", ""),
        ("...\nb\n...\n", "b", ""),
        ("...\nb\n...\n", "a\nb\nb\nc\n", ""),
        ("a\n...\nb\nc\n", "a\nb\nb\nc\n", ""),
        ("/ ... True", "/ ext4 True", ""),
        ("size  270.6 GB (high 3)", "size   1.2 TB (high 12,345)", "numbers"),
        ("Sat Nov 21 00:36:33 2026", "Mon Jun  1 10:06:03 2027", "numbers"),
        ("    ──────\n    vda  x", "    ────────────\n    nvme0n1   x", "vda"),
        ("at 5 of 10.\n", "at 4.5 of 1e+20.\n", "numbers"),
        ("for 90 ms", "for 2 h", "numbers"),
        ("x\n1 ┤\n  │\n0 ┤\ny", "x\n  │  ⠈\n0.5 ┤\ny", "plots"),
    ],
)
def test_outputs_that_fit(shown: str, printed: str, varies: str) -> None:
    assert Expected(shown, tuple(varies.split())).difference(printed) == ""


@pytest.mark.parametrize(
    ("shown", "printed", "varies", "line", "found"),
    [
        ("a\nb\n", "a\n", "", "b", "nothing more"),
        ("a\n", "a\nb\n", "", "nothing more", "b"),
        ("a b", "a  b", "", "a b", "a  b"),
        ("a\n...\nb\n", "a\nc\n", "", "b", "c"),
        ("5 of x", "6 of y", "numbers", "5 of x", "6 of y"),
        ("5", "five", "numbers", "5", "five"),
        ("vda", "", "vda", "vda", "nothing more"),
        ("vdas vda", "sdas sda", "vda", "vdas vda", "sdas sda"),
    ],
)
def test_outputs_that_do_not_fit(shown: str, printed: str, varies: str, line: str, found: str) -> None:
    expected = Expected(shown, tuple(varies.split()))
    assert expected.difference(printed).startswith(f"  expected: {line}\n  printed:  {found}\n")


def test_lines_in_any_order() -> None:
    expected = Expected("a 1\nb\n", ("numbers",), any_order=True)
    assert expected.difference("b\na 2\n") == ""
    assert expected.difference("b\nc\n").startswith("  expected: a 1\n")
    assert Expected("...\na\nb\n", any_order=True).difference("b\nc\na\n") == ""
    assert expected.difference("b\na 2\nc\n").startswith("  expected: nothing more\n  printed:  c\n")


def test_pages_are_refreshed_where_nothing_is_left_out(here: Path) -> None:
    path = page(here, "```console\n$ a\nold\nold\n$ b\nold\n...\n$ c\n```\n\nold\n")
    (block,) = blocks(path)
    refresh(path, {item.expected: f"new {item.text}\n" for item in commands(block) if item.expected is not None})
    assert path.read_text() == "```console\n$ a\nnew a\n$ b\nold\n...\n$ c\nnew c\n```\n\nold\n"


@pytest.mark.parametrize("name", MARKS)
def test_every_mark_is_described(name: str) -> None:
    assert f"<!-- {name}" in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
