"""The rows of the table in docs/federation.md, as the programs about federation measure them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs
from broker_peers import OURS, QPIDD
from federation_peers import RABBITMQ

#: What stands for what a kind of brokers does not have.
_NOTHING = "-"


@attrs.frozen
class Row:
    """A row of the table.

    Attributes:
        label: its first cell; `{name}` is an option of the program.
        names: of what was measured; several are in one cell.
        unit: with the blank before it; empty for plain numbers.
        digits: to which numbers are rounded, behind the decimal point; -2 for hundreds.
    """

    label: str
    names: Sequence[str]
    unit: str = ""
    digits: int = -2

    def cell(self, found: Mapping[str, float]) -> str:
        """What it says of a kind of brokers.

        Args:
            found: what was measured of it, by name.
        """
        values = [found[name] for name in self.names if name in found]
        texts = (f"{round(value, self.digits):,.{max(self.digits, 0)}f}{self.unit}" for value in values)
        return "; ".join(texts) or _NOTHING


def print_rows(rows: Sequence[Row], found: Mapping[str, Mapping[str, float]], options: Mapping[str, object]) -> None:
    """Print rows.

    Args:
        rows: of one program.
        found: what was measured, by kind of brokers and name.
        options: of the program, for the labels.
    """
    print("\nfor the table in docs/federation.md:")
    for row in rows:
        cells = [row.cell(found.get(kind, {})) for kind in (OURS, QPIDD, RABBITMQ)]
        print("| " + " | ".join([row.label.format_map(options), *cells]) + " |")
