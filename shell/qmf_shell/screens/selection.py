"""What a selection of objects (`list`, `watch`) means for a live screen."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.schema import ClassKey
from qmf_shell.objects.columns import column_names
from qmf_shell.objects.selecting import compile_selection
from qmf_shell.parsing.selection import ParsedSelection
from qmf_shell.screens.pages.objects import ObjectsSpec
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names


def objects_spec(
    context: Context, keys: Sequence[ClassKey], selection: ParsedSelection, *, all_integers: bool = False
) -> ObjectsSpec:
    """The objects that a selection without ids means.

    Args:
        context: the session.
        keys: the versions of one class.
        selection: what was typed after it.
        all_integers: every integer is a counter.

    Raises:
        QmfError: a name or value in the selection is wrong.
    """
    compiled = compile_selection(context, keys, selection)
    return ObjectsSpec(
        name=class_names(keys)[0],
        keys=keys,
        predicate=compiled.filter.predicate,
        test=compiled.filter.test,
        columns=column_names(selection),
        more=not selection.columns,
        sort_keys=compiled.sort_keys,
        all_integers=all_integers,
        limit=selection.limit,
    )
