"""The expressions of a rule as Spark columns. A wrong expression raises `RuleError` with file, rule and key."""

from __future__ import annotations

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.correlate.rule_table import RuleError
from qmf.pipeline.correlate.rules import Rule


class ExpressionCompiler:
    """Makes columns from the expressions of one rule."""

    def __init__(self, frame: DataFrame, file: str, rule: Rule) -> None:
        """Make a compiler.

        Args:
            frame: the rows that the expressions are about.
            file: of the rules.
            rule: of the expressions.
        """
        self._frame = frame
        self._where = f"{file}: {rule.name}"

    def column(self, key: str, text: str) -> Column:
        """The column of an expression; `key` is its key in the file."""
        try:
            column = F.expr(text)
            self._frame.select(column)
        except (AnalysisException, ParseException) as error:
            raise RuleError(f"{self._where}: {key}: {text!r}: {_first_sentence(error)}") from error
        return column

    def number(self, key: str, text: str) -> Column:
        """The column of an expression that must be a number, as a double."""
        column = self.column(key, text)
        type = self._type(column)
        if not isinstance(type, T.NumericType | T.BooleanType):
            raise RuleError(f"{self._where}: {key}: {text!r} is not a number but {type.simpleString()}")
        return column.cast("double")

    def condition(self, text: str) -> Column:
        """The column of a `where`; null counts as false."""
        column = self.column("where", text)
        type = self._type(column)
        if not isinstance(type, T.BooleanType):
            raise RuleError(f"{self._where}: where: {text!r} is not a condition but {type.simpleString()}")
        return F.coalesce(column, F.lit(False))

    def _type(self, column: Column) -> T.DataType:
        return self._frame.select(column).schema[0].dataType


def matches_pattern(column: Column, pattern: str) -> Column:
    """A condition: a name matches a pattern with ``*`` and ``?``; null doesn't match."""
    if "*" not in pattern and "?" not in pattern:
        found = column == pattern
    else:
        escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        found = column.like(escaped.replace("*", "%").replace("?", "_"))
    return F.coalesce(found, F.lit(False))


def _first_sentence(error: Exception) -> str:
    """The first sentence of an error of Spark."""
    text = str(error).strip().split("\n", 1)[0]
    return text.partition(" SQLSTATE")[0]
