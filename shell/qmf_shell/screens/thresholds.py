"""Thresholds of values: from which number on a value is a warning, or critical."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmf.views.fields import ObjectField
from qmf.views.units import is_number, parse_number
from qmf_shell.screens.rows import ThresholdState

#: Of statistics in percent, if nothing else was said.
PERCENT = (80.0, 95.0)


def threshold_key(class_name: str, name: str) -> str:
    """The name of the thresholds of a value of a class in the settings: ``queue.msgDepth``, in lower case."""
    return f"{class_name}.{name}".lower()


def limits_of(field: ObjectField, class_name: str, chosen: Mapping[str, Sequence[float]]) -> Sequence[float]:
    """The thresholds of a value: those that the user chose, or the default; none if it has none."""
    found = chosen.get(threshold_key(class_name, field.name))
    if found is None:
        found = chosen.get(threshold_key(class_name, field.element))
    if found is not None:
        return found
    return PERCENT if field.statistic and field.unit in ("percent", "%") else ()


def limits_of_text(text: str) -> tuple[float, ...] | None:
    """The thresholds that a user typed: none, one or two numbers, also ``10k`` and ``5Mi``; None if it is not that."""
    words = text.replace(",", " ").split()
    try:
        return tuple(float(parse_number(word)) for word in words) if len(words) <= 2 else None
    except ValueError:
        return None


def limits_text(limits: Sequence[float]) -> str:
    """Thresholds as a user types them."""
    return " ".join(f"{item:.15g}" for item in limits)


def level_of(value: object, limits: Sequence[float]) -> ThresholdState:
    """How a value compares with its thresholds. If the second is smaller, values below them are the bad ones."""
    if not limits or not is_number(value):
        return ThresholdState.NORMAL
    low = len(limits) > 1 and limits[1] < limits[0]
    reached = sum(value <= limit if low else value >= limit for limit in limits[:2])
    return ThresholdState(reached)
