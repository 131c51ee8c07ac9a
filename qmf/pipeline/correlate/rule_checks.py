"""Checks files of rules: what is wrong in themselves, and what doesn't fit the classes of a lake or of schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from qmf.pipeline.correlate.alerts import NAME_LABEL, SEVERITY_LABEL
from qmf.pipeline.correlate.expressions import functions_of
from qmf.pipeline.correlate.message_templates import wrong_formats
from qmf.pipeline.correlate.plan import read_plan
from qmf.pipeline.correlate.rule_file import load_rules
from qmf.pipeline.correlate.rules import Rule, RuleError
from qmf.pipeline.correlate.signal_reader import SignalReader
from qmf.pipeline.correlate.signals import expressions_of
from qmf.pipeline.duckdb_queries import connect, import_duckdb
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, columns_of, import_pyarrow
from qmf.pipeline.lake.columns import CLASS_KINDS, DATE, HASH, ClassVersion, ColumnType
from qmf.pipeline.lake.delta_lake import DeltaLake, RecordedClass, place
from qmf.pipeline.lake.location import kind_path
from qmf.schema import read_schema

#: What templates of Prometheus have in doubled braces, which here are plain braces.
_PROMETHEUS = re.compile(r"\{\{[^{}]*[$|][^{}]*\}\}|\{\{-?\s*(?:if|else|end|range|with|\.)\b[^{}]*\}\}")


def check_rules(
    file: str, lake: DeltaLake | None = None, schemas: Sequence[Path] = (), others: Sequence[str] = ()
) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Check a file of rules; the rules, and a text for each class that is not known.

    They must fit the classes of the lake and of schemas in XML, if there are any. `others` are errors that were found
    in the file's other tables, to be reported with those of the rules: a `RuleError` has a line for each.
    """
    rules: tuple[Rule, ...] = ()
    wrong: list[str] = []
    missing: tuple[str, ...] = ()
    try:
        rules = load_rules(file)
    except RuleError as error:
        wrong += str(error).splitlines()
    # Each reader of the file reports wrong syntax.
    wrong += [text for text in others if text not in wrong]
    if wrong:
        raise RuleError("\n".join(wrong))
    if lake is not None or schemas:
        wrong, missing = _find_mismatches(rules, lake, schemas)
    for line in _unknown_functions(rules):
        if not any(other.startswith(line.rpartition(": ")[0]) for other in wrong):
            wrong.append(line)
    wrong += [line for rule in rules for line in _wrong_texts(rule)]
    if wrong:
        raise RuleError("\n".join(wrong))
    return rules, missing


# -- classes


def _find_mismatches(
    rules: Sequence[Rule], lake: DeltaLake | None, files: Sequence[Path]
) -> tuple[list[str], tuple[str, ...]]:
    """What doesn't fit the classes, and the classes that are missing."""
    known = [] if lake is None else list(lake.classes())
    tables = {kind_path(kind): _table_schema(kind, None) for kind in RowKind if kind not in CLASS_KINDS}
    if lake is not None:
        tables |= {path: lake.table(path).schema() for path in lake.versions()}
    versions: list[ClassVersion] = []
    for schema in map(read_schema, files):
        versions += [*map(ClassVersion.from_schema, schema.classes), *map(ClassVersion.from_schema, schema.events)]
    for version in versions:
        kind = RowKind.EVENTS if version.event else RowKind.OBJECTS
        path = place(version, known)
        own = _table_schema(kind, version)
        tables[path] = import_pyarrow().unify_schemas([tables[path], own]) if path in tables else own
        known.append(RecordedClass(version, path))
    plan = read_plan(rules, known, "the lake" if lake is not None else "schema")
    with closing(SignalReader(plan, 0, tables, strict=False)) as reader:
        return list(reader.errors), plan.missing


def _table_schema(kind: RowKind, version: ClassVersion | None) -> Any:
    return arrow_schema((*columns_of(kind, version), (DATE, ColumnType.TEXT), (HASH, ColumnType.TEXT)))


# -- expressions and texts


def _unknown_functions(rules: Iterable[Rule]) -> Iterator[str]:
    with closing(connect()) as connection:
        for rule in rules:
            for key, text, _wanted in expressions_of(rule, range(len(rule.selectors))):
                for name in functions_of(text):
                    if not _is_function(connection, name):
                        yield f"{rule.where(key)}: {text!r}: there is no function {name}"


def _is_function(connection: Any, name: str) -> bool:
    try:
        connection.execute(f"DESCRIBE SELECT {name}()")
    except import_duckdb().CatalogException:
        return False
    except import_duckdb().Error:
        pass  # it has other arguments, or it is a word of the language
    return True


def _wrong_texts(rule: Rule) -> Iterator[str]:
    """What is wrong about templates and labels; alerts are raised all the same."""
    if rule.message is not None:
        yield from _wrong_text(rule, "message", rule.message)
    for key, texts in (("labels", rule.labels), ("annotations", rule.annotations)):
        for name, text in texts.items():
            yield from _wrong_text(rule, f"{key}.{name}", text)
    for name in sorted({NAME_LABEL, SEVERITY_LABEL} & rule.labels.keys()):
        yield f"{rule.where(f'labels.{name}')}: each alert has this label by itself; use another name"


def _wrong_text(rule: Rule, key: str, text: str) -> Iterator[str]:
    for match in _PROMETHEUS.finditer(text):
        yield f"{rule.where(key)}: {match[0]} is a template of Prometheus, and no value here: write {{name}}"
    for field in wrong_formats(text):
        yield f"{rule.where(key)}: {field}: there is no such format for it"
