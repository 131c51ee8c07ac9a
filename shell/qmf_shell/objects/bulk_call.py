"""Calls a method on many objects, and shows the outcome of each."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping, Sequence

from qmf.errors import QmfError
from qmf.schema import Method
from qmf.views.cells import Cell
from qmf.views.objects import ObjectView
from qmf.views.text import clean, one_line, plural
from qmf_shell.objects.lookup import object_label
from qmf_shell.objects.value_cells import argument_cells
from qmf_shell.results.result import Role, Table, TableColumn
from qmf_shell.session.backend import CallOutcome
from qmf_shell.session.context import Context

_COLUMNS = (
    TableColumn("ID", Role.ID),
    TableColumn("Object", Role.NAME, shortens=True),
    TableColumn("Result", wraps=True),
)


def call_objects(
    context: Context, method: Method, targets: Sequence[ObjectView], arguments: Mapping[str, object]
) -> Table:
    """Call a method on all targets; failures become a warning. After Ctrl-C the outcomes so far are shown.

    Args:
        context: the session.
        method: the method.
        targets: the objects.
        arguments: inputs by name.
    """
    outcomes: dict[int, CallOutcome] = {}
    name = clean(method.name)

    def on_outcome(number: int, outcome: CallOutcome) -> None:
        outcomes[number] = outcome
        context.report(f"{name}: {len(outcomes):,} of {len(targets):,}")

    stopped = False
    try:
        context.backend.call_all(targets, method, arguments, on_outcome)
    except KeyboardInterrupt:
        stopped = True
    failed = [outcome for outcome in outcomes.values() if isinstance(outcome, QmfError)]
    summary = [f"{len(outcomes) - len(failed):,} done", f"{len(failed):,} failed"]
    if stopped:
        summary.append(f"{len(targets) - len(outcomes):,} not called or unanswered")
        context.warnings.append(f"cancelled: {', '.join(summary)}")
    elif failed:
        reasons = collections.Counter(one_line(str(error)) for error in failed)
        context.warnings.append(f"{name} failed on {len(failed):,} of {len(targets):,}: {reasons.most_common(1)[0][0]}")
    outputs = _output_names(method, outcomes.values())
    rows = [_row(context, method, target, outcomes.get(at), outputs) for at, target in enumerate(targets)]
    columns = (*_COLUMNS, *(TableColumn(clean(output), wraps=True, key=output) for output in outputs))
    title = f"{name} on {plural(len(targets), 'object')}: {', '.join(summary)}"
    return Table(columns, tuple(rows), title=title)


def _output_names(method: Method, outcomes: Collection[CallOutcome]) -> list[str]:
    """Names of the outputs that were received, in schema order; those that the schema does not have come last."""
    received = dict.fromkeys(name for one in outcomes if not isinstance(one, QmfError) for name in one)
    return list(dict.fromkeys([*(item.name for item in method.outputs if item.name in received), *received]))


def _row(
    context: Context, method: Method, target: ObjectView, outcome: CallOutcome | None, outputs: Sequence[str]
) -> tuple[Cell, ...]:
    cells: Mapping[str, Cell] = {}
    if outcome is None:
        result = "not called, or no answer yet"
    elif isinstance(outcome, QmfError):
        result = one_line(str(outcome))
    else:
        result, cells = "done", argument_cells(context, method.outputs, outcome)
    number = context.ids.assign(target.identity, target.created)
    return number, object_label(target.identity), result, *(cells.get(name) for name in outputs)
