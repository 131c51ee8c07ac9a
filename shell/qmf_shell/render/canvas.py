"""A grid of dots that lines are drawn on: two by four dots per character (braille), or one."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

#: The bits of the dots in a braille character, by column and row.
_DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))
_BRAILLE = 0x2800
#: Characters that draw lines without braille, one per line.
ASCII_LINES = "*+ox#@"
#: Columns between two marks of a line.
_MARK_DISTANCE = 12


@attrs.frozen
class Segment:
    """Some characters of a row that have the same colour.

    Attributes:
        text: the characters.
        series: number of the line that they draw; None for axes and texts.
    """

    text: str
    series: int | None = None


SegmentRow = tuple[Segment, ...]


class Canvas:
    """A grid of dots."""

    def __init__(self, columns: int, rows: int, braille: bool) -> None:
        self._across, self._down = (2, 4) if braille else (1, 1)
        self._braille = braille
        self.size = (columns * self._across, rows * self._down)
        self._cells: list[list[tuple[int, int | None]]] = [[(0, None)] * columns for _ in range(rows)]
        # A row that each line passes in each column, and the signs by row and column.
        self._passed: dict[tuple[int, int], int] = {}
        self._signs: dict[tuple[int, int], tuple[str, int]] = {}

    def line(self, number: int, dots: Sequence[tuple[int, int] | None]) -> None:
        """Draw a line through dots."""
        before: tuple[int, int] | None = None
        for dot in dots:
            if dot is not None:
                self._stroke(number, before or dot, dot)
            before = dot

    def _stroke(self, number: int, start: tuple[int, int], end: tuple[int, int]) -> None:
        steps = max(abs(end[0] - start[0]), abs(end[1] - start[1]), 1)
        for step in range(steps + 1):
            x = start[0] + round((end[0] - start[0]) * step / steps)
            y = start[1] + round((end[1] - start[1]) * step / steps)
            self._set(number, x, y)

    def _set(self, number: int, x: int, y: int) -> None:
        column, row = x // self._across, y // self._down
        bits, _ = self._cells[row][column]
        dot = _DOTS[x % 2][y % 4] if self._braille else 1
        # Where two lines cross, the character has the colour of the later one.
        self._cells[row][column] = (bits | dot, number)
        self._passed[number, column] = row

    def mark(self, number: int, sign: str, place: int, count: int) -> None:
        """Put a sign on a line every few columns, where other lines have theirs not.

        Args:
            number: of the line.
            sign: one character.
            place: of the line among those that have signs.
            count: how many those are.
        """
        width = len(self._cells[0])
        start = (_MARK_DISTANCE // 2 + place * _MARK_DISTANCE // count) % _MARK_DISTANCE
        for column in range(min(start, width - 1), width, _MARK_DISTANCE):
            row = self._passed.get((number, column))
            if row is not None:
                self._signs[row, column] = (sign, number)

    def rows(self) -> list[SegmentRow]:
        """The rows; adjacent characters of the same line form one segment."""
        result: list[SegmentRow] = []
        for row, cells in enumerate(self._cells):
            segments: list[Segment] = []
            for column, (bits, number) in enumerate(cells):
                sign = self._signs.get((row, column))
                char, owner = sign or (self._char(bits, number), number if bits else None)
                if segments and segments[-1].series == owner:
                    segments[-1] = Segment(segments[-1].text + char, owner)
                else:
                    segments.append(Segment(char, owner))
            result.append(tuple(segments))
        return result

    def _char(self, bits: int, number: int | None) -> str:
        if not bits:
            return " "
        return chr(_BRAILLE + bits) if self._braille else ASCII_LINES[(number or 0) % len(ASCII_LINES)]
