"""Collects the metrics of a scrape: which families of which objects, with which labels, and how many series."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping, Sequence

import attrs

from qmf.console.aio import RemoteObject
from qmf.protocol.objects import as_dict
from qmf.schema import ClassSchema
from qmf.web.metrics.exposition import BLOCK, FamilyRows, MetricRow, RowBlock, escape_label, label_text
from qmf.web.metrics.followed_classes import ClassObjects
from qmf.web.metrics.names import MetricFamily, snake_case
from qmf.web.problems import Problem

#: Classes with the most series that a refusal names.
_NAMED = 5


@attrs.frozen
class Collected:
    """What a scrape has.

    Attributes:
        families: with their objects.
        series: how many lines they are at most.
        left_out: classes that are left out, since they have too many series, with how many.
    """

    families: Sequence[FamilyRows]
    series: int
    left_out: Mapping[str, int] = attrs.field(factory=dict)


def collect(classes: Sequence[ClassObjects], patterns: Sequence[str], limit: int) -> Collected:
    """Collect the metrics of objects.

    Args:
        patterns: of names of families; empty for all.
        limit: series at most. If there are more, the classes with the most series are left out.

    Raises:
        Problem: 503, each class has more series; names those with the most, and how to choose.
    """
    chosen = [(item, _choose(item.families, patterns)) for item in classes]
    counts: dict[str, int] = {}
    for item, families in chosen:
        name = f"{item.schema.package}:{item.schema.key.name}"
        counts[name] = counts.get(name, 0) + len(families) * len(item.objects)
    series, left_out = sum(counts.values()), dict[str, int]()
    for name in sorted(counts, key=lambda name: -counts[name]):
        if series > limit:
            left_out[name] = counts[name]
            series -= counts[name]
    if left_out and not series:
        raise _too_many(counts, sum(counts.values()), limit)
    found: dict[str, tuple[MetricFamily, list[RowBlock]]] = {}
    owners: dict[str, str] = {}
    for item, families in chosen:
        owner = f"{item.schema.package}:{item.schema.key.name}"
        if not families or owner in left_out:
            continue
        rows = list(_rows(item))
        blocks = [RowBlock(rows[at : at + BLOCK]) for at in range(0, len(rows), BLOCK)]
        for family in families:
            # Two classes whose names differ in their points only would share a family: the first one has it.
            if owners.setdefault(family.name, owner) == owner:
                known = found.setdefault(family.name, (family, []))
                known[1].extend(blocks)
    return Collected([FamilyRows(family, blocks) for family, blocks in found.values()], series, left_out)


def _choose(families: Sequence[MetricFamily], patterns: Sequence[str]) -> list[MetricFamily]:
    if not patterns:
        return list(families)
    return [
        family
        for family in families
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns for name in {family.name, family.series})
    ]


def _too_many(counts: Mapping[str, int], series: int, limit: int) -> Problem:
    largest = sorted(counts.items(), key=lambda item: -item[1])[:_NAMED]
    named = ", ".join(f"{name} {count}" for name, count in largest)
    return Problem(
        503,
        f"{series} series are more than the limit of {limit}: {named}. Choose classes or families "
        "(--metrics, --metrics-family, ?class=, ?family=), or raise --metrics-limit",
        series=series,
        limit=limit,
        classes=dict(largest),
    )


def _rows(item: ClassObjects) -> Iterator[MetricRow]:
    """Labels and values of the objects; no two objects have the same labels."""
    keys = _keys(item.schema)
    seen: set[str] = set()
    for obj in item.objects:
        values = as_dict(obj.data.values)
        labels = _labels(obj, keys, values)
        if labels in seen:
            labels = f'{labels},object="{escape_label(obj.object_id.object_name)}"'
            if labels in seen:
                continue  # the same object of two runs of its agent
        seen.add(labels)
        yield MetricRow(labels, values, obj.agent, keys)


def _keys(schema: ClassSchema) -> list[tuple[str, str]]:
    """Wire names of the properties that identify an object, with the names of their labels."""
    found: dict[str, str] = {}
    for item in schema.properties:
        if item.index:
            label = snake_case(item.name)
            if item.type.base == "objId":
                label = label.removesuffix("_ref")
            label = f"object_{label}" if label in ("agent", "object", "quantile", "le") else label
            found.setdefault(label, item.name)
    return [(name, label) for label, name in found.items()]


def _labels(obj: RemoteObject, keys: Sequence[tuple[str, str]], values: Mapping[str, object]) -> str:
    agent = escape_label(obj.agent)
    if not keys:
        return f'{{agent="{agent}",object="{escape_label(obj.object_id.object_name)}"'
    return f'{{agent="{agent}"' + "".join(
        f',{label}="{escape_label(label_text(values.get(name)))}"' for name, label in keys
    )
