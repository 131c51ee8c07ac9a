"""The tutorial is correct: its code runs, prints the text below it, and its schema is that of the example."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from qmf.broker import EmbeddedBroker

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "agent.md"
URL = "amqp://127.0.0.1:5672"
_BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@attrs.frozen
class Block:
    """Code of the page and what it prints."""

    line: int
    code: str
    output: str


def texts(kind: str) -> list[str]:
    return [match["text"] for match in _BLOCK.finditer(PAGE.read_text(encoding="utf-8")) if match["kind"] == kind]


def blocks() -> Iterator[Block]:
    """The code blocks, each with the block of output behind it, if there is one."""
    text = PAGE.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    for index, match in enumerate(found):
        if match["kind"] == "python":
            follower = found[index + 1] if index + 1 < len(found) else None
            output = follower["text"] if follower is not None and follower["kind"] == "output" else ""
            yield Block(text.count("\n", 0, match.start()) + 1, match["text"], output)


def test_the_schema_is_that_of_the_example() -> None:
    schema = (ROOT / "examples" / "shop" / "shop.xml").read_text(encoding="utf-8")
    assert [text for text in texts("xml") if text not in schema] == []


@pytest.mark.slow
def test_the_code_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "examples")
    names: dict[str, object] = {"__name__": "tutorial"}
    with EmbeddedBroker() as broker:
        wrong = [fault for block in blocks() if (fault := run(block, names, broker.url))]
    assert not wrong, "\n".join(wrong)


def run(block: Block, names: dict[str, object], url: str) -> str:
    """Run a block where the page's broker is `url`; what is wrong with what it prints, or nothing."""
    # Empty lines in front keep line numbers in tracebacks right.
    code = "\n" * block.line + block.code.replace(URL, url)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(PAGE), "exec"), names)
    seen = printed.getvalue().replace(url, URL)
    if doctest.OutputChecker().check_output(block.output, seen, doctest.ELLIPSIS):
        return ""
    return f"{PAGE.name}, line {block.line} prints\n{seen}\nnot\n{block.output}"
