"""The columns of objects of a class on a live screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from qmf.schema import ClassSchema
from qmf.views.cells import Cell, CellForm, Instant
from qmf.views.objects import ObjectKey, field_value
from qmf.views.text import clean
from qmf_shell.objects.columns import ALL_COLUMNS, ValueColumn, value_columns
from qmf_shell.results.result import Role
from qmf_shell.screens.pages.object_row import ObjectRow
from qmf_shell.screens.rows import Mark, Row, ScreenColumn, ThresholdState, rate_cell
from qmf_shell.screens.thresholds import level_of, limits_of
from qmf_shell.session.context import Context

ID, INDEX, NAME, AGENT, STATE, CREATED, UPDATED = "\0id", "\0index", "\0name", "\0agent", "\0state", "\0new", "\0now"
#: Ends the key of a column with rates.
RATE = "/s"
#: Properties that are shown of a class without statistics.
SHOWN = 6
#: What a page knows of the present: seconds of a monotonic clock, and the number of the last update.
Now = Callable[[], tuple[float, int]]


class ObjectColumns:
    """The columns of the objects of a class.

    Attributes:
        columns: all that exist.
    """

    def __init__(
        self,
        context: Context,
        schemas: Sequence[ClassSchema],
        now: Now,
        *,
        all_integers: bool = False,
        form: CellForm = CellForm.BRIEF,
    ) -> None:
        """Make the columns of a class.

        Args:
            now: the time and the number of the update.
            all_integers: every integer is a counter.
            form: how much the cells of values say.
        """
        self._context = context
        self._schemas = schemas
        self._all_integers = all_integers
        self._now = now
        self._form = form
        self.columns: list[ScreenColumn] = []
        self._totals: dict[str, str] = {}
        self._common()
        for item in value_columns(schemas, ALL_COLUMNS[:1]) if schemas else ():
            self._add(item)
        self._ends()

    def _common(self) -> None:
        ids = self._context.ids
        self.columns += [
            ScreenColumn(ID, "ID", lambda row: ids.number(row.item.identity.key), role=Role.ID, right=True, fixed=True),
            ScreenColumn(INDEX, "Index", lambda row: row.item.identity.index, role=Role.NAME, fixed=True),
            ScreenColumn(
                NAME,
                "Name",
                lambda row: row.item.identity.title or None,
                desc="the property name, where it is not the index",
            ),
        ]

    def _ends(self) -> None:
        self.columns += [
            ScreenColumn(STATE, "State", _state, lambda row: row.mark.value or None, Role.SEVERITY),
            ScreenColumn(
                AGENT,
                "Agent",
                lambda row: _agent(row.item.identity.key),
                role=Role.FAINT,
                desc="the agent that has the object",
            ),
            _time(CREATED, "Created", "created"),
            _time(UPDATED, "Updated", "updated"),
        ]

    def _add(self, item: ValueColumn) -> None:
        field = item.field
        column = item.column_as(self._form)
        name = column.title
        key = item.item.name if item.item is not None else field.name

        def level(row: ObjectRow) -> ThresholdState:
            limits = limits_of(field, row.item.schema.name, self._context.settings.thresholds)
            return level_of(row.item.values.get(field.name), limits) if limits else ThresholdState.NORMAL

        def has_changed(row: ObjectRow) -> bool:
            before = row.before
            return (
                before is not None
                and row.update == self._now()[1]
                and before.values.get(field.name) != row.item.values.get(field.name)
            )

        self.columns.append(
            ScreenColumn(
                key,
                name,
                lambda row: item.cell(self._context, row.item),
                lambda row: _sortable(field_value(row.item, field)),
                right=field.is_number and not field.is_reference and not column.wraps,
                name=field.name,
                desc=field.desc,
                form=column.form,
                unit=column.unit,
                level=level,
                changed=has_changed,
            )
        )
        if field.grows(all_integers=self._all_integers):
            self._totals[key + RATE] = key
            self.columns.append(
                ScreenColumn(
                    key + RATE,
                    f"{name}/s",
                    lambda row: rate_cell(row.rate(field, self._now()[0]), field.unit),
                    lambda row: row.rate(field, self._now()[0]),
                    right=True,
                    rate=True,
                    name=field.name,
                    desc=f"growth of {clean(field.name)} per second",
                )
            )

    def tell_agents(self) -> bool:
        """Place the agent beside the index, since several agents have objects with the same; False if it is there."""
        agent = next(item for item in self.columns if item.key == AGENT)
        if agent.fixed:
            return False
        self.columns.remove(agent)
        at = next(number for number, item in enumerate(self.columns) if item.key == INDEX)
        self.columns.insert(at + 1, attrs.evolve(agent, fixed=True))
        return True

    # -- which are shown

    def default(self, names: Sequence[str]) -> list[str]:
        """Keys of the columns shown at first, for the names of values that the user wants.

        Raises:
            NotFoundError: the class has no value of this name.
        """
        keys = [item.item.name if item.item else item.field.name for item in value_columns(self._schemas, names)]
        self._add_parts(keys, names)
        keys = keys or [item.key for item in self.columns if item.name][:SHOWN]
        return [ID, INDEX, NAME, *self._with_rates(keys)]

    def _with_rates(self, keys: Sequence[str]) -> list[str]:
        """Keys of columns, with the rates of counters beside them."""
        return [one for key in keys for one in (key, key + RATE) if one == key or one in self._totals]

    def _add_parts(self, keys: Sequence[str], names: Sequence[str]) -> None:
        """Add columns for what is only a part of a statistic, such as ``depthHigh``, and was asked for by name."""
        known = {item.key for item in self.columns}
        for item, key in zip(value_columns(self._schemas, names), keys, strict=True):
            if key not in known:
                self._add(item)

    def names(self, columns: Sequence[ScreenColumn]) -> list[str]:
        """The names of the values that columns show, without rates and what every object has."""
        return [item.key for item in columns if item.name and not item.rate]

    def key_of(self, name: str, *, rate: bool = False) -> str | None:
        """The key of the column that shows a value, or its rate; None if there is none."""
        for item in self.columns:
            if item.name.lower() == name.lower() and item.rate == rate:
                return item.key
        common = {"index": INDEX, "agent": AGENT, "created": CREATED, "updated": UPDATED}.get(name.lower())
        return common or next((item.key for item in self.columns if item.key.lower() == name.lower()), None)

    def sorts_by_rate(self, key: str | None) -> bool:
        """True if a column shows rates."""
        return key in self._totals

    def next_rates(self, shown: Sequence[str]) -> tuple[list[str], str]:
        """What is shown after totals and rates, totals, or rates: the next of these, and its name."""
        keys = list(dict.fromkeys(self._totals.get(key, key) for key in shown))
        rates = any(key in self._totals for key in shown)
        if rates and any(key + RATE in self._totals for key in shown):
            return keys, "totals"
        if rates:
            return self._with_rates(keys), "totals and rates"
        return [key + RATE if key + RATE in self._totals else key for key in keys], "rates"


def _sortable(value: object) -> object:
    return value.object_name if isinstance(value, ObjectKey) else value


def _agent(key: ObjectKey) -> str:
    return f"{key.agent_name} at {key.broker}" if key.broker else key.agent_name


def _state(row: Row) -> Cell:
    return None if row.mark is Mark.NONE else row.mark.value


def _time(key: str, title: str, name: str) -> ScreenColumn:
    return ScreenColumn(
        key,
        title,
        lambda row: Instant(getattr(row.item, name)),
        lambda row: getattr(row.item, name) or None,
        Role.TIME,
        name="",
        desc=f"when it was {name}",
    )
