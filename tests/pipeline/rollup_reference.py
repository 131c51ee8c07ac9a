"""A roll-up in plain Python, by the rules that docs/pipeline.md states: what others are compared with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import pairwise
from typing import Any

from qmf.pipeline.rollup.members import NumberMember
from qmf.schema import Style

SECOND = 10**9
DAY = 86_400 * SECOND

Row = dict[str, Any]

#: Start of the window in nanoseconds, agent, object, member.
Key = tuple[int, str | None, str, str]


def rolled_up(
    samples: Iterable[Row], members: Sequence[NumberMember], seconds: int, *, continued: bool
) -> dict[Key, Row]:
    """The rows of the table, without the names of the class, from all samples there are."""
    found: dict[Key, Row] = {}
    series: dict[tuple[str | None, str], list[Row]] = defaultdict(list)
    for row in samples:
        if row["_statistics"]:
            series[row["_agent"], row["_object"]].append(row)
    for (agent, name), rows in series.items():
        rows.sort(key=lambda row: (row["_ts_ns"], row["_run"], row["_seq"]))
        for member in members:
            have = [row for row in rows if _is_present(row, member)]
            windows: dict[int, list[Row]] = defaultdict(list)
            for row in have:
                windows[row["_ts_ns"] // (seconds * SECOND) * seconds * SECOND].append(row)
            before: Row | None = None
            for start, inside in sorted(windows.items()):
                known = before if before and before["_ts_ns"] >= start // DAY * DAY - 7 * DAY else None
                end = start + seconds * SECOND
                found[start, agent, name, member.name] = _row(member, inside, known, start, end, continued=continued)
                before = inside[-1]
    return found


def _is_present(row: Row, member: NumberMember) -> bool:
    if row.get(member.value) is None:
        return False
    return member.count is None or bool(row[member.count])


def _row(member: NumberMember, rows: list[Row], before: Row | None, start: int, end: int, *, continued: bool) -> Row:
    first, last = rows[0], rows[-1]
    weights = [int(row[member.count]) if member.count else 1 for row in rows]
    total = sum(row[member.value] * weight for row, weight in zip(rows, weights, strict=True))
    numbers = {
        "first": first[member.value],
        "last": last[member.value],
        "low": min(row[member.low] for row in rows),
        "high": max(row[member.high] for row in rows),
        "total": total,
    }
    found: Row = {
        "samples": len(rows),
        "weight": sum(weights),
        "style": member.style.value,
        "unit": member.unit,
        "deleted": bool(last.get("_delete_ns")),
        "sample_mean": float(total) / sum(weights),
        **dict.fromkeys(("before_ns", "before", "area", "held_ns", "delta", "delta_exact", "resets", "rate")),
        **{key: float(value) for key, value in numbers.items()},
        **{f"{key}_exact": Decimal(int(value)) if member.whole else None for key, value in numbers.items()},
        **{f"{name}_ns": row["_ts_ns"] for name, row in (("first", first), ("last", last))},
        **{f"{name}_epoch": row["_epoch"] for name, row in (("first", first), ("last", last))},
    }
    found["mean"] = found["sample_mean"]
    if member.style is Style.MMA:
        return found
    found["before_ns"] = before["_ts_ns"] if before else None
    if member.style is Style.COUNT:
        return found | _counter(member, rows, before, continued=continued)
    return found | _gauge(member, rows, before, start, end, found["sample_mean"], continued=continued)


def _counter(member: NumberMember, rows: list[Row], before: Row | None, *, continued: bool) -> Row:
    arrived = sorted(rows, key=lambda row: (row["_run"], row["_seq"]))
    back = any(one["_run"] == two["_run"] and two["_seq"] < one["_seq"] for one, two in pairwise(rows))
    orders = [rows, arrived] if back else [rows]
    walked = [_growth(member, [*pairwise(order)], continued=continued) for order in orders]
    resets, delta = min(walked, key=lambda item: item[0])  # of equal ones the first, by time
    if before is not None:
        first = _growth(member, [(before, rows[0])], continued=continued)
        resets, delta = resets + first[0], delta + first[1]
    span = (rows[-1]["_ts_ns"] - (before or rows[0])["_ts_ns"]) / SECOND
    return {"delta_exact": delta, "delta": float(delta), "resets": resets, "rate": delta / span if span > 0 else None}


def _growth(member: NumberMember, steps: list[tuple[Row, Row]], *, continued: bool) -> tuple[int, int]:
    """How often a counter began again, and its growth."""
    delta = resets = 0
    for one, two in steps:
        reset = _is_other_life(one, two, continued=continued) or two[member.value] < one[member.value]
        delta += int(two[member.value]) - (0 if reset else int(one[member.value]))
        resets += reset
    return resets, delta


def _is_other_life(one: Row, two: Row, *, continued: bool) -> bool:
    """The object was created again, or its agent started again, between two samples."""
    epochs = one["_epoch"], two["_epoch"]
    created = one.get("_create_ns"), two.get("_create_ns")
    is_new = created[0] != created[1] if all(created) else bool(one.get("_delete_ns"))
    if continued:
        return is_new and None not in epochs and epochs[0] == epochs[1]
    return is_new or (None not in epochs and epochs[0] != epochs[1])


def _gauge(
    member: NumberMember, rows: list[Row], before: Row | None, start: int, end: int, plain: float, *, continued: bool
) -> Row:
    def holds(one: Row, two: Row) -> bool:
        return not one.get("_delete_ns") and not _is_other_life(one, two, continued=continued)

    inside = [(one[member.value], two["_ts_ns"] - one["_ts_ns"]) for one, two in pairwise(rows) if holds(one, two)]
    parts = list(inside)
    held = before is not None and holds(before, rows[0])
    if before is not None and held:
        parts.append((before[member.value], rows[0]["_ts_ns"] - start))
    if not rows[-1].get("_delete_ns"):
        parts.append((rows[-1][member.value], end - rows[-1]["_ts_ns"]))
    time = sum(part[1] for part in parts)
    return {
        "before": float(before[member.value]) if before is not None and held else None,
        "area": sum(float(value) * length / SECOND for value, length in inside),
        "held_ns": sum(length for _, length in inside),
        "mean": sum(float(value) * length for value, length in parts) / time if time else plain,
    }
