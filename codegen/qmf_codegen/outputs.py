"""What a run makes: the formats, and the files. Loads none of the libraries that make them."""

from __future__ import annotations

import enum
from pathlib import Path

import attrs


class Format(enum.Enum):
    """What is made of a schema. The values are those of the option `--format`."""

    PYTHON = "python"  #: a package of modules
    XML = "xml"  #: the schema itself in canonical form
    JSON_SCHEMA = "json-schema"  #: a JSON Schema document
    MARKDOWN = "markdown"  #: a reference page


@attrs.frozen
class GeneratedFile:
    """One file to be written.

    Attributes:
        path: relative to the output directory.
        text: the whole content.
    """

    path: Path
    text: str
