"""Makes signals from rows of the lake with DuckDB, in this process."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from qmf.pipeline.correlate.expressions import columns_of, to_duckdb
from qmf.pipeline.correlate.plan import InputTable, ReadPlan, RuleInput
from qmf.pipeline.correlate.rules import RatioRule, Rule, RuleError
from qmf.pipeline.correlate.signals import ROWS, RowTable, event_time_sql, expressions_of, field_names, followed_columns
from qmf.pipeline.duckdb_queries import connect, duckdb_errors, import_duckdb, quote_name
from qmf.pipeline.lake.arrow import import_pyarrow

#: Signals that are fetched at once.
_CHUNK = 20_000

_ORDER = '"rule", "key", "at", "ts", "run", "seq", "role"'

#: What an expression must be, and the types of DuckDB that are.
_NUMBERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "HUGEINT")
_OTHER_NUMBERS = ("FLOAT", "DOUBLE", "BOOLEAN", "DECIMAL")

SignalRow = tuple[Any, ...]


@attrs.frozen
class _Followed:
    """A class whose objects are followed: its relation, and the columns of it that rules need."""

    relation: str
    columns: tuple[str, ...]


class SignalReader:
    """Reads for one plan. Belongs to one thread; `close` frees what DuckDB holds."""

    def __init__(
        self, plan: ReadPlan, late: int, schemas: Mapping[str, Any], *, strict: bool = True, connection: Any = None
    ) -> None:
        """Prepare to read tables with schemas of Arrow, by path, of which rows may be late.

        The connection is to DuckDB, for this reader only; None for a new one. Rules that don't fit their classes are a
        `RuleError` with a line for each, or otherwise left out, see `errors` and `left_out`.
        """
        self.plan = plan
        self._late = late
        #: What doesn't fit.
        self.errors: tuple[str, ...] = ()
        #: The numbers of rules that read nothing, because they don't fit.
        self.left_out: frozenset[int] = frozenset()
        #: The expressions that could not be computed for some rows, by the number of their rule.
        self.failures: dict[int, str] = {}
        self._schemas = {path: schemas[path] for path in self.paths(plan) if path in schemas}
        self._connection = connect() if connection is None else connection
        self._connection.execute("SET TimeZone = 'UTC'")
        try:
            self._followed = self._create_followed()
            self._selects = self._create_selects()
            if strict and self.errors:
                raise RuleError("\n".join(self.errors))
        except BaseException:
            self._connection.close()
            raise

    @staticmethod
    def paths(plan: ReadPlan) -> list[str]:
        """The tables that a plan needs: those of rules, and those of followed objects."""
        return sorted({table.path for table in plan.tables} | plan.followed_paths)

    def close(self) -> None:
        """Free what DuckDB holds."""
        self._connection.close()

    def follow(self, rows: Mapping[str, Any]) -> None:
        """Learn about the objects that rules follow references to: Arrow tables or datasets, by path of the table."""
        for name, followed in self._followed.items():
            for table in self.plan.followed[name]:
                if table.path in rows:
                    columns = self._columns(table, followed.columns)
                    with self._register("added", rows[table.path]):
                        self._execute(
                            f"INSERT INTO {followed.relation} SELECT {columns}, {event_time_sql(self._late)} FROM added"
                        )

    def forget_followed(self) -> None:
        """Keep only the last row of each followed object."""
        for followed in self._followed.values():
            self._execute(
                f"CREATE OR REPLACE TEMP TABLE {followed.relation} AS SELECT * FROM {followed.relation} "
                "QUALIFY row_number() OVER (PARTITION BY _agent, _object ORDER BY _at DESC) = 1"
            )

    @property
    def followed_columns(self) -> dict[str, tuple[str, ...]]:
        """The columns that rules need of followed objects, by the class as the rules name it."""
        return {name: followed.columns for name, followed in self._followed.items()}

    def followed_objects(self) -> dict[str, Any]:
        """The last row of each followed object, for `restore_followed`: Arrow tables by class, as rules name it."""
        self.forget_followed()
        return {
            name: self._connection.sql(f"FROM {followed.relation}").to_arrow_table()
            for name, followed in self._followed.items()
        }

    def followed_changes(self) -> dict[str, Any]:
        """The rows of each followed object without those that say the same as the one before, as `followed_objects`."""
        return {
            name: self._connection.sql(_changes(followed)).to_arrow_table() for name, followed in self._followed.items()
        }

    def restore_followed(self, objects: Mapping[str, Any]) -> None:
        """Learn about objects that another reader with the same `followed_columns` knew."""
        for name, rows in objects.items():
            with self._register("added", rows):
                self._execute(f"INSERT INTO {self._followed[name].relation} BY NAME FROM added")

    def signals(self, rows: Mapping[str, Any]) -> Iterator[list[SignalRow]]:
        """The rows of `signal_batches`, in portions."""
        return map(signal_rows, self.signal_batches(rows))

    def signal_batches(self, rows: Mapping[str, Any]) -> Iterator[Any]:
        """The signals of rows, with `SIGNAL_COLUMNS`, sorted by rule, subject, time, run and number, as record batches.

        Rows for which an expression of a rule cannot be computed give no signal for this rule, see `failures`. They are
        Arrow tables or datasets, by path of the table; raises `LakeError` where they can't be read.
        """
        parts: dict[RowTable, str] = {}
        for number, (path, selects) in enumerate(self._selects.items()):
            if path in rows and selects:
                self._connection.register(f"rows_{number}", rows[path])
                parts |= dict.fromkeys(selects, f"rows_{number}")
        if not parts:
            return
        with duckdb_errors("rules"):
            try:
                batches = self._sorted_signals(select.signals(relation) for select, relation in parts.items())
            except import_duckdb().Error:
                failed = {select for select, relation in parts.items() if self._failure(select.signals(relation))}
                if not failed:
                    raise
                for select in failed:
                    self._note_failure(select, parts[select])
                batches = self._sorted_signals(
                    (self._rows_of(select.item, select.table, tolerant=True) if select in failed else select).signals(
                        relation
                    )
                    for select, relation in parts.items()
                )
            yield from batches

    def _sorted_signals(self, parts: Iterable[str]) -> Iterator[Any]:
        """All signals; as they are sorted before, an expression that cannot be computed fails here."""
        rows = self._connection.sql(f"{' UNION ALL '.join(parts)} ORDER BY {_ORDER}").to_arrow_reader(_CHUNK)
        first = next(rows, None)
        return iter(()) if first is None else itertools.chain([first], rows)

    def _failure(self, select: str) -> str | None:
        """Why a query fails; None where it doesn't."""
        try:
            self._connection.execute(f"SELECT count(hash(t)) FROM ({select}) AS t").fetchall()
        except import_duckdb().Error as error:
            return _reason(error)
        return None

    def _note_failure(self, select: RowTable, relation: str) -> None:
        """Note which expression of a rule failed."""
        item = select.item
        for key, text, _wanted in expressions_of(item.rule, item.roles):
            if (reason := self._failure(select.count(relation, text))) is not None:
                self.failures[item.number] = f"{item.rule.where(key)}: {text!r}: {reason}; such rows don't count"
                return
        self.failures[item.number] = (
            f"{item.rule.place.of('')}: {item.rule.name}: {self._failure(select.signals(relation))}"
        )

    # -- preparation

    def _create_followed(self) -> dict[str, _Followed]:
        columns: dict[str, set[str]] = {name: set() for name in self.plan.followed}
        for rule in {item.number: item.rule for table in self.plan.tables for item in table.inputs}.values():
            for reference, names in followed_columns(rule).items():
                if reference in rule.follow:
                    columns[rule.follow[reference]].update(names)
        found = {}
        for number, (name, tables) in enumerate(self.plan.followed.items()):
            followed = _Followed(f"followed_{number}", tuple(sorted(columns[name])))
            tables = tuple(table for table in tables if table.path in self._schemas)
            if not tables:
                continue
            table = tables[-1]
            with self._register("sample", self._schemas[table.path].empty_table()):
                self._execute(
                    f"CREATE TEMP TABLE {followed.relation} AS "
                    f"SELECT {self._columns(table, followed.columns)}, 0::BIGINT AS _at FROM sample"
                )
            found[name] = followed
        return found

    def _columns(self, table: InputTable, wanted: Sequence[str]) -> str:
        names = {name.lower(): name for name in self._schemas[table.path].names}
        own = (
            f"{quote_name(names[name.lower()]) if name.lower() in names else 'NULL'} AS {quote_name(name)}"
            for name in wanted
        )
        return ", ".join(["_agent", "_object", *own])

    def _create_selects(self) -> dict[str, list[RowTable]]:
        selects: dict[str, list[RowTable]] = {}
        errors = dict.fromkeys(self.plan.errors.values())
        wrong = set(self.plan.errors)
        for table in self.plan.tables:
            if table.path not in self._schemas:
                continue
            selects[table.path] = []
            for part in _parts(table):
                if found := self._check(part, table, self._relations(part.rule)):
                    errors.update(dict.fromkeys(found))
                    wrong.add(part.number)
                elif not self._lacks_columns(part, table):
                    selects[table.path].append(self._rows_of(part, table))
        self.errors = tuple(errors)
        self.left_out = frozenset(wrong - {select.item.number for own in selects.values() for select in own})
        return selects

    def _rows_of(self, item: RuleInput, table: InputTable, *, tolerant: bool = False) -> RowTable:
        names, relations = self._schemas[table.path].names, self._relations(item.rule)
        return RowTable(item, table, names, self._late, relations, tolerant=tolerant)

    def _relations(self, rule: Rule) -> dict[str, str]:
        return {
            reference: self._followed[name].relation
            for reference, name in rule.follow.items()
            if name in self._followed
        }

    def _lacks_columns(self, item: RuleInput, table: InputTable) -> bool:
        """True where another version of the class has the columns that this one lacks, or nothing is followed yet."""
        names = {name.lower() for name in self._schemas[table.path].names}
        needed = [column for _, text, _ in expressions_of(item.rule, item.roles) for column in columns_of(text)]
        return any(column[0].lower() not in names for column in needed) or any(
            len(column) == 2 and item.rule.follow.get(column[0]) not in self._followed for column in needed
        )

    def _check(self, item: RuleInput, table: InputTable, relations: Mapping[str, str]) -> list[str]:
        """What is wrong about a rule's expressions and texts."""
        rule = item.rule
        read = [other for other in self.plan.tables_of(item.number) if other.path in self._schemas]
        everywhere = self._column_names(read)
        same_class = self._column_names(other for other in read if _class_of(other) == _class_of(table))
        found = [
            f"{rule.where('evidence' if name in rule.evidence else 'message')}: no class of the rule has a {name!r}"
            for name in field_names(rule)
            if self.plan.complete[item.number] and name.partition(".")[0].lower() not in everywhere
        ]
        for key, text, wanted in expressions_of(rule, item.roles):
            wrong = _column_error(rule, text, same_class) or self._type_error(text, wanted, table, relations)
            if wrong:
                found.append(f"{rule.where(key)}: {text!r}: {wrong}")
        return found

    def _column_names(self, tables: Iterable[InputTable]) -> set[str]:
        """The columns of some tables, in lower case."""
        return {name.lower() for table in tables for name in self._schemas[table.path].names}

    def _type_error(self, text: str, wanted: str, table: InputTable, relations: Mapping[str, str]) -> str | None:
        """What is wrong about an expression, by its type."""
        names = {name.lower(): name for name in self._schemas[table.path].names}
        for column in columns_of(text):
            if column[0].lower() not in names or (len(column) == 2 and column[0] not in relations):
                return None  # another version of the class has it, or nothing is known of the followed objects yet
        sources = "".join(
            f" LEFT JOIN (FROM {relation} LIMIT 0) AS {quote_name(name)} ON true"
            for name, relation in relations.items()
        )
        # A row of nulls: what fails for it fails for all, such as the conversion of a text that is no number.
        pa, schema = import_pyarrow(), self._schemas[table.path]
        with self._register("sample", pa.table([pa.nulls(1, field.type) for field in schema], names=schema.names)):
            made = f"SELECT {to_duckdb(text, names, ROWS)} AS x FROM sample AS {ROWS}{sources}"
            try:
                self._connection.execute(f"SELECT typeof(x), x FROM ({made})")
                type = str(self._connection.fetchall()[0][0])
            except import_duckdb().Error as error:
                return _reason(error)
        if wanted == "number" and type not in _NUMBERS and not type.startswith(_OTHER_NUMBERS):
            return f"is not a number but {type}"
        if wanted == "condition" and type != "BOOLEAN":
            return f"is not a condition but {type}"
        return None

    # -- DuckDB

    def _execute(self, sql: str) -> None:
        with duckdb_errors("rules"):
            self._connection.execute(sql)

    @contextmanager
    def _register(self, name: str, rows: Any) -> Iterator[None]:
        """Arrow data as a relation, within a block."""
        self._connection.register(name, rows)
        try:
            yield
        finally:
            self._connection.unregister(name)


def signal_rows(batch: Any) -> list[SignalRow]:
    """The rows of a record batch."""
    return list(zip(*(column.to_pylist() for column in batch.columns), strict=True))


def _parts(table: InputTable) -> Iterator[RuleInput]:
    """The rules that read a table; both sides of a ratio may do so, each with signals of its own."""
    for item in table.inputs:
        for roles in [(role,) for role in item.roles] if isinstance(item.rule, RatioRule) else [item.roles]:
            yield RuleInput(item.number, item.rule, roles)


def _changes(followed: _Followed) -> str:
    """The query of `SignalReader.followed_changes`; of rows with the same time, one counts."""
    columns = ", ".join(f"{quote_name(name)} := {quote_name(name)}" for name in ("_object", *followed.columns))
    once = f"SELECT DISTINCT ON (_agent, _object, _at) * FROM {followed.relation} ORDER BY ALL"
    return (
        f"FROM ({once}) QUALIFY struct_pack({columns}) IS DISTINCT FROM "
        f"lag(struct_pack({columns})) OVER (PARTITION BY _agent, _object ORDER BY _at)"
    )


def _reason(error: Exception) -> str:
    """The first line of DuckDB's message, without the kind of error."""
    return str(error).partition("\n")[0].partition(": ")[2].rstrip("!")


def _class_of(table: InputTable) -> tuple[str, ...]:
    return (table.kind.value, *(f"{item.package}:{item.name}" for item in table.versions[:1]))


def _column_error(rule: Rule, text: str, known: Collection[str]) -> str | None:
    """What is wrong about the columns in an expression of a rule; `known` are those of the class, in lower case."""
    columns = columns_of(text)
    for column in columns:
        if len(column) == 2 and column[0] not in rule.follow:
            return f"follow doesn't say to which class {column[0]} refers"
    for column in columns:
        if column[0].lower() not in known:
            close = difflib.get_close_matches(column[0].lower(), sorted(known), 1)
            return f"the class has no {column[0]!r}" + (f"; did you mean {close[0]!r}?" if close else "")
    return None
