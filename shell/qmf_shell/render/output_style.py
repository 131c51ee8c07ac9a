"""The styles in which results are printed."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import TextIO


class OutputStyle(enum.Enum):
    """How results are printed."""

    COLOUR = "colour"
    PLAIN = "plain"
    JSON = "json"
    CSV = "csv"
    YAML = "yaml"


#: Styles for programs: notices for people go to stderr.
MACHINE_READABLE = (OutputStyle.JSON, OutputStyle.CSV, OutputStyle.YAML)


def choose_output_style(
    out: TextIO, environ: Mapping[str, str], *, no_color: bool, output: str = "table"
) -> OutputStyle:
    """The style for an output format (``table``, ``json``, ``csv`` or ``yaml``).

    Colour only on a terminal that supports it, and only if NO_COLOR is unset or empty.
    """
    if output != "table":
        return OutputStyle(output)
    if no_color or environ.get("NO_COLOR") or environ.get("TERM") == "dumb" or not out.isatty():
        return OutputStyle.PLAIN
    return OutputStyle.COLOUR
