"""matplotlib figures as inline SVG of a page: with the page's colours, unique ids, and no script.

Colours in figures are placeholders, which become variables of the page's style sheet: one drawing serves the light and
the dark mode and paper. Texts stay texts; matplotlib escapes them, and does not interpret them as formulas.
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any
from xml.sax.saxutils import escape

from qmf.pipeline.errors import MissingExtraError

#: The variables of the style sheet, and the placeholder colour of each.
MARKS: Mapping[str, str] = MappingProxyType(
    {
        name: f"#fe{number:02x}01"
        for number, name in enumerate(
            (
                "ink",
                "paper",
                "muted",
                "grid",
                "c1",
                "c2",
                "c3",
                "c4",
                "c5",
                "up",
                "down",
                "unknown",
                "bad",
                "warn",
                "notice",
                "info",
            )
        )
    }
)

#: Settings of all figures.
SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "svg.fonttype": "none",
        "text.parse_math": False,
        "font.size": 9,
        "text.color": MARKS["ink"],
        "axes.edgecolor": MARKS["grid"],
        "axes.labelcolor": MARKS["muted"],
        "axes.titlecolor": MARKS["ink"],
        "axes.titlesize": 9.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.grid.axis": "y",
        "axes.axisbelow": True,
        "grid.color": MARKS["grid"],
        "grid.linewidth": 0.6,
        "xtick.color": MARKS["grid"],
        "ytick.color": MARKS["grid"],
        "xtick.labelcolor": MARKS["muted"],
        "ytick.labelcolor": MARKS["muted"],
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        "legend.fontsize": 8,
        "legend.frameon": False,
        "lines.linewidth": 1.5,
        "lines.solid_joinstyle": "round",
        "figure.facecolor": "none",
        "axes.facecolor": "none",
        "savefig.facecolor": "none",
    }
)


def import_matplotlib() -> Any:
    """The module `matplotlib`.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import matplotlib
        import matplotlib.dates
        import matplotlib.figure
        import matplotlib.ticker
    except ModuleNotFoundError as error:
        raise MissingExtraError("matplotlib") from error
    return matplotlib


def inline(figure: Any, name: str, label: str, hints: Mapping[str, str] | None = None) -> str:
    """A figure as an `svg` element.

    Args:
        figure: to draw; made with `SETTINGS`.
        name: unique in the page: a letter, then letters and digits.
        label: description for screen readers.
        hints: tooltips by the gid of a part of the figure.
    """
    out = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(out, format="svg", metadata=nothing)
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->\s*", "", text, flags=re.DOTALL)
    for gid, hint in (hints or {}).items():
        text = text.replace(f'<g id="{gid}">', f'<g id="{gid}"><title>{escape(hint)}</title>')
    for variable, mark in MARKS.items():
        text = text.replace(mark, f"var(--{variable})")
    # All figures use the same ids.
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'\bxlink:href="#', f'href="#{name}-', text)
    head, _, rest = text.partition(">")
    head = re.sub(r'\s(width|height|xmlns:xlink|version)="[^"]*"', "", head)
    return f'{head} role="img" aria-label="{escape(label, {chr(34): "&quot;"})}" class="{name[0]}-plot">{rest}'
