"""The choice of the style."""

from __future__ import annotations

import io

import pytest
from qmf_shell.render.styles import OutputStyle, choose_output_style


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("out", "environ", "no_color", "wanted", "style"),
    [
        (Tty(), {}, False, "table", OutputStyle.COLOUR),
        (Tty(), {"NO_COLOR": ""}, False, "table", OutputStyle.COLOUR),
        (Tty(), {"NO_COLOR": "1"}, False, "table", OutputStyle.PLAIN),
        (Tty(), {"TERM": "dumb"}, False, "table", OutputStyle.PLAIN),
        (Tty(), {}, True, "table", OutputStyle.PLAIN),
        (Tty(), {}, False, "json", OutputStyle.JSON),
        (Tty(), {}, False, "csv", OutputStyle.CSV),
        (io.StringIO(), {}, False, "table", OutputStyle.PLAIN),
    ],
)
def test_look(out: io.StringIO, environ: dict[str, str], no_color: bool, wanted: str, style: OutputStyle) -> None:
    assert choose_output_style(out, environ, no_color=no_color, output=wanted) is style
