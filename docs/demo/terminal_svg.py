"""A terminal's content as SVG, in which columns stay in line whatever font the viewer has.

Each word is placed at its column by itself. A viewer that knows `textLength` also fits the word into its columns;
others (librsvg) ignore that, and with any usual monospaced font a word stays within them anyway.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from html import escape

from rich.cells import cell_len
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

#: Size of the font, width and height of a cell, in pixels.
FONT, WIDTH, HEIGHT = 20, 12.2, 24.4
#: Around the text: at the sides, above, below.
SIDE, ABOVE, BELOW = 10, 40, 10
#: Where letters stand in their line.
BASE = 18.5
#: What is placed by itself: a word, a part of a long one, or a character that is not of ASCII (rules, plots).
_PIECE = re.compile(r"[!-~]{1,12}|[^\x00-\x7f]")
_FONTS = "'Fira Code','DejaVu Sans Mono',Menlo,Consolas,monospace"
_LIGHTS = ("#ff5f57", "#febc2e", "#28c840")


def terminal_svg(lines: Sequence[Text], columns: int, title: str) -> str:
    """The picture. Fonts are the viewer's own: nothing is loaded from elsewhere.

    Args:
        lines: with their styles.
        columns: of the terminal.
        title: above the text.
    """
    width, height = columns * WIDTH + 2 * SIDE, len(lines) * HEIGHT + ABOVE + BELOW
    backgrounds, texts = [], []
    styles: dict[str, str] = {}
    for number, line in enumerate(lines):
        for column, text, style in _runs(line):
            x, y = SIDE + column * WIDTH, ABOVE + number * HEIGHT
            front, back = _colours(style)
            if back is not None:
                size = f'width="{_n(cell_len(text) * WIDTH)}" height="{_n(HEIGHT + 0.25)}"'
                backgrounds.append(f'<rect fill="{back}" x="{_n(x)}" y="{_n(y)}" {size} shape-rendering="crispEdges"/>')
            name = styles.setdefault(_css(style, front), f"s{len(styles) + 1}")
            for match in _PIECE.finditer(text):
                at = x + cell_len(text[: match.start()]) * WIDTH
                length = cell_len(match[0]) * WIDTH
                place = f'class="{name}" x="{_n(at)}" y="{_n(y + BASE)}" textLength="{_n(length)}"'
                texts.append(f"<text {place}>{escape(match[0], quote=False)}</text>")
    rules = "".join(f".{name}{{{css}}}" for css, name in styles.items())
    theme = SVG_EXPORT_THEME
    lights = "".join(
        f'<circle cx="{22 + 22 * number}" cy="20" r="7" fill="{colour}"/>' for number, colour in enumerate(_LIGHTS)
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_n(width)} {_n(height)}">',
            f"<style>text{{font-family:{_FONTS};font-size:{FONT}px;white-space:pre}}",
            f".t{{font:bold 18px sans-serif}}{rules}</style>",
            f'<rect fill="{theme.background_color.hex}" width="{_n(width)}" height="{_n(height)}" rx="8"/>',
            lights,
            f'<text class="t" fill="{theme.foreground_color.hex}" x="{_n(width / 2)}" y="26" text-anchor="middle">'
            f"{escape(title, quote=False)}</text>",
            *backgrounds,
            *texts,
            "</svg>\n",
        ]
    )


def _runs(line: Text) -> Iterator[tuple[int, str, Style]]:
    """Parts of a line with one style: column, text and style."""
    console = Console(file=io.StringIO(), force_terminal=True, width=10_000)
    column = 0
    for segment in line.render(console):
        if segment.text and segment.text != "\n":
            yield column, segment.text, segment.style or Style()
            column += cell_len(segment.text)


def _colours(style: Style) -> tuple[str, str | None]:
    """Colours of text and background; None for the usual background."""
    theme = SVG_EXPORT_THEME
    front = theme.foreground_color if style.color is None else style.color.get_truecolor(theme)
    if style.reverse:
        back = theme.background_color if style.bgcolor is None else style.bgcolor.get_truecolor(theme)
        return back.hex, front.hex
    plain = style.bgcolor is None or style.bgcolor.is_default
    return front.hex, None if plain or style.bgcolor is None else style.bgcolor.get_truecolor(theme).hex


def _css(style: Style, front: str) -> str:
    parts = [f"fill:{front}"]
    if style.bold:
        parts.append("font-weight:bold")
    if style.underline or style.strike:
        parts.append(f"text-decoration:{'underline' if style.underline else 'line-through'}")
    return ";".join(parts)


def _n(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")
