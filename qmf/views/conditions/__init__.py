"""Conditions on objects, as people type them: one language for the shell and the web console.

`words` splits a line, `tokens` its words, `parser` makes trees (`tree`) of them, `compiling` makes tests and predicates
of trees, with the `fields` that a caller gives and the `literals` of their types. Knows no object: records of the
shell, objects of the console and events are tested alike.
"""

from __future__ import annotations

from qmf.views.conditions.compiling import FindField, ObjectFilter, Test, compile_filter
from qmf.views.conditions.fields import Field
from qmf.views.conditions.parser import parse_condition
from qmf.views.conditions.tree import Condition, ConditionError, searched_words, value_names

__all__ = [
    "Condition",
    "ConditionError",
    "Field",
    "FindField",
    "ObjectFilter",
    "Test",
    "compile_filter",
    "parse_condition",
    "searched_words",
    "value_names",
]
