"""What benchmarks report: figures, each beside a peer or a limit of the same run, as a table and as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import attrs


@attrs.frozen
class Figure:
    """One result.

    Attributes:
        name: what was measured.
        value: the result, a median where there were several.
        unit: of `value`.
        peer: what it is compared with; empty for a figure that stands alone.
        peer_value: the peer's result in the same run, in the same unit.
        at_least: the ratio to the peer that is wanted, where more is better.
        at_most: the same, where less is better.
        limit: the most that `value` may be.
    """

    name: str
    value: float
    unit: str
    peer: str = ""
    peer_value: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    limit: float | None = None

    @property
    def ratio(self) -> float | None:
        """Value by the peer's value."""
        return None if not self.peer_value else self.value / self.peer_value

    @property
    def wanted(self) -> str:
        """The goal in words."""
        if self.limit is not None:
            return f"<= {number(self.limit)} {self.unit}"
        if self.at_least is not None:
            return f">= {self.at_least:g} x"
        return "" if self.at_most is None else f"<= {self.at_most:g} x"

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None without one, or without the peer."""
        if self.limit is not None:
            return self.value <= self.limit
        if self.ratio is None:
            return None
        if self.at_least is not None:
            return self.ratio >= self.at_least
        return None if self.at_most is None else self.ratio <= self.at_most


def number(value: float) -> str:
    """A number with three or more significant digits."""
    size = abs(value)
    return f"{value:,.0f}" if size >= 100 else f"{value:.1f}" if size >= 10 else f"{value:.3g}"


def table(figures: Sequence[Figure]) -> str:
    """The figures as text."""
    rows = [("", "value", "beside", "its value", "ratio", "wanted", "")]
    for figure in figures:
        reached = {True: "yes", False: "NO", None: ""}[figure.reached]
        rows.append(
            (
                figure.name,
                f"{number(figure.value)} {figure.unit}",
                figure.peer,
                "" if figure.peer_value is None else number(figure.peer_value),
                "" if figure.ratio is None else f"{number(figure.ratio)} x",
                figure.wanted,
                reached,
            )
        )
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    left = (0, 2)
    return "\n".join(
        "  ".join(
            cell.ljust(width) if index in left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def parser(description: str) -> argparse.ArgumentParser:
    """An argument parser with what all benchmarks have."""
    made = argparse.ArgumentParser(description=description)
    made.add_argument("--json", type=writable, metavar="FILE", help="write the figures there, too")
    return made


def writable(text: str) -> Path:
    """A file that an option names: it must be possible to write it, or long measurements would be in vain.

    Raises:
        ArgumentTypeError: it is not.
    """
    file = Path(text)
    new = not file.exists()
    try:
        # What is there stays until there are figures to replace it, and what is not stays away.
        file.open("a", encoding="utf-8").close()
        if new:
            file.unlink()
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {text}: {error.strerror or error}") from None
    return file


def report(figures: Sequence[Figure], file: Path | None) -> None:
    """Print the table, and write the JSON where it is wanted."""
    print(table(figures))
    if file is not None:
        save(figures, file)


def save(figures: Sequence[Figure], file: Path) -> None:
    """Write figures as JSON: a list of objects."""
    rows = [{**attrs.asdict(figure), "ratio": figure.ratio, "reached": figure.reached} for figure in figures]
    file.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


def load(file: Path) -> list[Figure]:
    """Read what `save` wrote."""
    names = {field.name for field in attrs.fields(Figure)}
    rows = json.loads(file.read_text(encoding="utf-8"))
    return [Figure(**{name: value for name, value in row.items() if name in names}) for row in rows]


def note(text: str) -> None:
    """Say what is going on, away from the figures."""
    print(text, file=sys.stderr, flush=True)
