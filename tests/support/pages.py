"""Pages of the documentation whose code is run: each block prints what stands in the block of output behind it."""

from __future__ import annotations

import contextlib
import doctest
import io
import re
from collections.abc import Iterator
from pathlib import Path

import attrs

#: The broker of the pages.
URL = "amqp://127.0.0.1:5672"
_BLOCK = re.compile(r"^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@attrs.frozen
class Block:
    """Code of a page.

    Attributes:
        line: where it begins.
        code: Python.
        output: what it prints; parts of it may be ``...``.
    """

    line: int
    code: str
    output: str


def kinds(page: Path) -> set[str]:
    """The languages of the page's blocks."""
    return {match["kind"] for match in _BLOCK.finditer(page.read_text(encoding="utf-8"))}


def blocks(page: Path) -> Iterator[Block]:
    """The code blocks, each with the block of output behind it, if there is one."""
    text = page.read_text(encoding="utf-8")
    found = list(_BLOCK.finditer(text))
    for index, match in enumerate(found):
        if match["kind"] == "python":
            follower = found[index + 1] if index + 1 < len(found) else None
            output = follower["text"] if follower is not None and follower["kind"] == "output" else ""
            yield Block(text.count("\n", 0, match.start()) + 1, match["text"], output)


def run(page: Path, url: str, names: dict[str, object]) -> list[str]:
    """Run the code blocks where the page's broker is `url`; what is wrong with what they print."""
    return [fault for block in blocks(page) if (fault := _run_block(page, block, url, names))]


def _run_block(page: Path, block: Block, url: str, names: dict[str, object]) -> str:
    # Empty lines in front keep line numbers in tracebacks right.
    code = "\n" * block.line + block.code.replace(URL, url)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, str(page), "exec"), names)
    seen = printed.getvalue().replace(url, URL).replace(url.removeprefix("amqp://"), "127.0.0.1:5672")
    if doctest.OutputChecker().check_output(block.output, seen, doctest.ELLIPSIS):
        return ""
    return f"{page.name}, line {block.line} prints\n{seen}\nnot\n{block.output}"
