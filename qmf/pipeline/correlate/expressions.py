"""The expressions of rules: SQL as Spark has it, written again for DuckDB. Pure: no engine.

An expression is about the columns of one row. `reference.column` is a column of the object that the reference is about,
see `Rule.follow`.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from typing import Any

from qmf.pipeline.errors import MissingExtraError

_CALL = re.compile(r"([A-Za-z_]\w*)\(")


class ExpressionError(ValueError):
    """A text is not an expression about one row; the message says why."""


def check_expression(text: str) -> None:
    """Check the syntax; raises `ExpressionError`, as all functions here."""
    _parse(text)


def columns_of(text: str) -> list[tuple[str, ...]]:
    """The columns of an expression, each as its name, or as the names of a reference and a column."""
    expressions = _sqlglot().exp
    names = [_names(column) for column in _parse(text).find_all(expressions.Column)]
    return list(dict.fromkeys(names))


def functions_of(text: str) -> list[str]:
    """The names of the functions of an expression, as DuckDB calls them."""
    calls = (node.sql(dialect="duckdb") for node in _parse(text).find_all(_sqlglot().exp.Func))
    return list(dict.fromkeys(match[1] for call in calls if (match := _CALL.match(call))))


def to_duckdb(text: str, names: Mapping[str, str], relation: str) -> str:
    """The expression in DuckDB's SQL; columns without a reference are those of the relation.

    They are spelled as in the table, by their names in lower case.
    """
    expressions = _sqlglot().exp

    def spell_column(node: Any) -> Any:
        if not isinstance(node, expressions.Column):
            return node
        *prefix, name = _names(node)
        if prefix:
            return expressions.column(name, table=prefix[0], quoted=True)
        return expressions.column(names.get(name.lower(), name), table=relation, quoted=True)

    return str(_parse(text).copy().transform(spell_column).sql(dialect="duckdb"))


def pattern_condition(column: str, pattern: str) -> str:
    """A condition in SQL: a name matches a pattern with ``*`` and ``?``; null doesn't match."""
    quote = "'" + pattern.replace("'", "''") + "'"
    if "*" not in pattern and "?" not in pattern:
        return f"coalesce({column} = {quote}, false)"
    for plain, escaped in (("\\", "\\\\"), ("%", "\\%"), ("_", "\\_"), ("*", "%"), ("?", "_")):
        quote = quote.replace(plain, escaped)
    return f"coalesce({column} LIKE {quote} ESCAPE '\\', false)"


def _names(column: Any) -> tuple[str, ...]:
    return tuple(part.name for part in column.parts)


@functools.lru_cache(maxsize=1000)
def _parse(text: str) -> Any:
    sqlglot = _sqlglot()
    expressions = sqlglot.exp
    try:
        statements = sqlglot.parse(text, read="spark")
    except sqlglot.errors.SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        column = details[0].get("col")
        place = f" at column {column}" if column else ""
        raise ExpressionError(f"not an expression{place}") from None
    if len(statements) != 1 or statements[0] is None:
        raise ExpressionError("not one expression")
    (tree,) = statements
    refused: Mapping[str, Callable[[Any], bool]] = {
        "a query": lambda node: isinstance(node, expressions.Query | expressions.Subquery),
        "a statement": lambda node: isinstance(node, expressions.Command | expressions.DDL | expressions.DML),
        "an aggregate of rows: use the key aggregate": lambda node: isinstance(node, expressions.AggFunc),
        "a window": lambda node: isinstance(node, expressions.Window),
        "an alias": lambda node: isinstance(node, expressions.Alias),
        "all columns": lambda node: isinstance(node, expressions.Star),
    }
    for node in tree.walk():
        for what, found in refused.items():
            if found(node):
                raise ExpressionError(f"it has {what}; give an expression on the columns of one row")
        if isinstance(node, expressions.Column) and len(node.parts) > 2:
            raise ExpressionError(f"{node.sql()} has more than one dot")
    return tree


def _sqlglot() -> Any:
    try:
        import sqlglot
        import sqlglot.errors
    except ModuleNotFoundError as error:
        raise MissingExtraError("sqlglot") from error
    return sqlglot
