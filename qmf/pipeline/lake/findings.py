"""What a check of a lake finds."""

from __future__ import annotations

import attrs


@attrs.frozen
class Finding:
    """Something that is wrong with a lake, or worth knowing.

    Attributes:
        place: the file, table or run.
        text: what is wrong.
        repaired: what was done; empty where nothing was.
        is_damage: False for what needs no repair.
    """

    place: str
    text: str
    repaired: str = ""
    is_damage: bool = True

    def __str__(self) -> str:
        return f"{self.place}: {self.text}" + (f": {self.repaired}" if self.repaired else "")
