"""Pages of the documentation as blocks of code and output, with the marks that stand in front of them.

Knows Markdown and nothing of how a block is run. The convention is described in CONTRIBUTING.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs
from docs.compare import Expected

ROOT = Path(__file__).resolve().parents[2]

#: What a block can be; see CONTRIBUTING.md.
LANGUAGES = ("console", "output", "python", "sh", "sql", "text", "toml", "xml")

#: Words that a mark can begin with.
MARKS = ("varies", "any order", "of", "repeat", "not run", "file", "part of", "run", "end", "program")

_COMMENT = re.compile(r"^<!-- (?P<name>[a-z ]+?)(?:: (?P<value>.*))? -->$")
_FENCE = re.compile(r"^```(?P<language>\S*)$")
#: What begins a command in a block of the language ``console``.
_PROMPTS = ("$ ", "qmf> ")


class PageError(Exception):
    """A page does not follow the convention; names page and line."""


@attrs.frozen
class Block:
    """A block between fences.

    Attributes:
        page: its file.
        line: of the fence in front of it, from 1.
        language: behind that fence; may be empty.
        text: its lines, each with its end.
        marks: the comments directly in front of it, in order: names and values.
    """

    page: Path
    line: int
    language: str
    text: str
    marks: tuple[tuple[str, str], ...]

    @property
    def where(self) -> str:
        """Page and line, for messages."""
        return self.where_of(self.line)

    def where_of(self, line: int) -> str:
        """Page and another line."""
        return f"{self.page.relative_to(ROOT)}:{line}"

    def expects(self, text: str, line: int) -> Expected:
        """`text`, which begins in a line of the page, as output of this block, with what its marks say about output."""
        varies = tuple(item.strip() for name, value in self.marks if name == "varies" for item in value.split(","))
        return Expected(text, varies, self.mark("any order") is not None, line)

    def mark(self, name: str) -> str | None:
        """The value of a mark that may stand once."""
        values = [value for item, value in self.marks if item == name]
        if len(values) > 1:
            raise PageError(f"{self.where}: more than one mark {name!r}")
        return values[0] if values else None


@attrs.frozen
class Command:
    """A command of a session.

    Attributes:
        line: in the page, from 1.
        prompt: ``$`` or ``qmf>``.
        text: what is typed.
        expected: what it prints; None for anything.
    """

    line: int
    prompt: str
    text: str
    expected: Expected | None


def pages() -> list[Path]:
    """All pages that are tested."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[Block]:
    """All blocks of a page, in order."""
    return list(_blocks(page, page.read_text(encoding="utf-8").splitlines(keepends=True)))


def _blocks(page: Path, lines: list[str]) -> Iterator[Block]:
    marks: tuple[tuple[str, str], ...] = ()
    at = 0
    while at < len(lines):
        line = lines[at].rstrip("\n")
        if fence := _FENCE.match(line):
            end = next((index for index in range(at + 1, len(lines)) if lines[index].rstrip("\n") == "```"), None)
            if end is None:
                raise PageError(f"{page.name}:{at + 1}: the block has no end")
            yield Block(page, at + 1, fence["language"], "".join(lines[at + 1 : end]), marks)
            marks, at = (), end
        elif comment := _COMMENT.match(line):
            name = comment["name"]
            if name not in MARKS:
                raise PageError(f"{page.name}:{at + 1}: no such mark: {name!r}")
            marks = (*marks, (name, comment["value"] or ""))
        elif marks:
            raise PageError(f"{page.name}:{at + 1}: a mark stands directly in front of a block")
        at += 1


def refresh(page: Path, printed: Mapping[Expected, str]) -> None:
    """Write into the page what was printed instead of what it expects, where it leaves nothing out."""
    found = page.read_text(encoding="utf-8").splitlines()
    for expected in sorted(printed, key=lambda item: item.line, reverse=True):
        if expected.line and "..." not in expected.text:
            first = expected.line - 1
            found[first : first + len(expected.text.splitlines())] = printed[expected].rstrip().splitlines()
    page.write_text("".join(f"{line.rstrip()}\n" for line in found), encoding="utf-8")


def commands(block: Block) -> list[Command]:
    """The commands of a session, each with what it prints."""
    found: list[tuple[int, str, str, list[str]]] = []
    for number, line in enumerate(block.text.splitlines(keepends=True), block.line + 1):
        prompt = next((item for item in _PROMPTS if line.startswith(item)), None)
        if prompt is not None:
            found.append((number, prompt.strip(), line.removeprefix(prompt).rstrip("\n"), []))
        elif not found:
            raise PageError(f"{block.where}: a session begins with a command")
        else:
            found[-1][3].append(line)
    return [
        Command(number, prompt, text, block.expects("".join(output), number + 1))
        for number, prompt, text, output in found
    ]


def lines(block: Block, expected: Expected | None) -> list[Command]:
    """The commands of a block of the language ``sh``: its lines; a backslash continues one, ``#`` begins a comment.

    The last one prints what is expected; what the others print isn't looked at.
    """
    found: list[Command] = []
    text = ""
    for number, line in enumerate(block.text.splitlines(), block.line + 1):
        text += line.removesuffix("\\")
        if not line.endswith("\\"):
            if text.strip() and not text.startswith("#"):
                found.append(Command(number, "$", re.sub(r"\s{2,}#.*", "", text), None))
            text = ""
    return [*found[:-1], attrs.evolve(found[-1], expected=expected)]
