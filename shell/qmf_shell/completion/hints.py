"""The hint in the bottom toolbar while a line is typed: what is expected at the cursor, in one line.

Never uses the network, never fails.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.schema import Argument, Direction
from qmf.views.conditions.words import split_partial
from qmf.views.text import one_line
from qmf_shell.completion.analysis import analyse
from qmf_shell.completion.data import CompletionData, classes_of, free_inputs, method_of, target_fields
from qmf_shell.completion.kinds import (
    AnyOf,
    ArgumentNames,
    ArgumentValue,
    CommandNames,
    CompletionKind,
    CompletionRequest,
    MethodNames,
    OptionNames,
    OptionValue,
    SettableNames,
    SettableValue,
    SettingNames,
    SettingValue,
    ValueNames,
    ValueOf,
)
from qmf_shell.completion.suggestions import suggest
from qmf_shell.objects.schema_text import about_argument, about_field, about_method
from qmf_shell.parsing.command import AnyCommand
from qmf_shell.parsing.method_arguments import value_text
from qmf_shell.parsing.statements import Place, cursor_statement
from qmf_shell.settings import SETTINGS


@attrs.frozen
class HintPart:
    """A part of a hint.

    Attributes:
        text: its text.
        now: it is what is expected at the cursor.
    """

    text: str
    now: bool = False


def hint_for(text: str, data: CompletionData) -> list[HintPart]:
    """The hint about `text`, the line up to the cursor; empty for an empty line."""
    found = cursor_statement(text)
    text = text[found.start :]
    if not text.strip() or found.place is not Place.COMMAND:
        return []
    aliases = dict(data.aliases)
    request = analyse(text, data.registry, aliases)
    typed = split_partial(text)
    name = typed.before[0].text if typed.before else typed.word.text
    name = aliases.get(name, name).split(maxsplit=1)[0] if aliases.get(name) else name
    command = data.registry.get(name)
    specific = _specific(request.kind, request, data)
    if specific:
        return specific
    if command is None:
        return []
    return _usage(command)


def _usage(command: AnyCommand) -> list[HintPart]:
    return [
        HintPart(command.usage[-1] if len(command.usage) == 1 else command.usage[0], True),
        HintPart(f"  {command.summary}"),
    ]


def _specific(kind: CompletionKind, request: CompletionRequest, data: CompletionData) -> list[HintPart]:
    match kind:
        case AnyOf(kinds):
            return next((hints for part in kinds if (hints := _specific(part, request, data))), [])
        case CommandNames():
            return []
        case OptionNames(command):
            found = suggest(request, data)
            if len(found) == 1:
                return [HintPart(found[0].text, True), HintPart(f"  {found[0].meta}")]
            return [HintPart("  ".join(_option(item.names, item.value) for item in command.options))]
        case OptionValue(option):
            return [HintPart(option.value or "", True), HintPart(f"  {option.help}")]
        case MethodNames():
            found = suggest(request, data)
            if request.prefix and len(found) == 1 and (method := method_of(data, kind.target, found[0].text)):
                return _method(method.name, method.inputs, None, about_method(method))
            return []
        case ArgumentNames(target, name, _, _):
            method = method_of(data, target, name)
            if method is None:
                return []
            free = free_inputs(method, kind)
            current = free[0] if free else None
            return _method(method.name, method.inputs, current, about_argument(current) if current else "complete")
        case ArgumentValue(target, name, argument):
            method = method_of(data, target, name)
            item = next((item for item in method.inputs if item.name == argument), None) if method else None
            return _method(method.name, method.inputs, item, about_argument(item)) if method and item else []
        case _:
            return _values(kind, request, data)


def _values(kind: CompletionKind, request: CompletionRequest, data: CompletionData) -> list[HintPart]:
    match kind:
        case ValueNames() | SettableNames():
            found = suggest(attrs.evolve(request, kind=kind), data) if request.prefix else []
            return [HintPart(found[0].shown, True), HintPart(f"  {found[0].meta}")] if len(found) == 1 else []
        case ValueOf(target, name):
            for field in target_fields(data, target):
                if field.name.lower() == name.lower():
                    return [HintPart(field.name, True), HintPart(f"  {one_line(about_field(field))}")]
            return []
        case SettableValue(target, name):
            for schema in classes_of(data, target):
                item = schema.property(name)
                if item is not None:
                    return [HintPart(item.name, True), HintPart(f"  {one_line(about_argument(item))}")]
            return []
        case SettingNames():
            return []
        case SettingValue(name):
            setting = next((item for item in SETTINGS if item.name == name.lower()), None)
            return [HintPart(setting.name, True), HintPart(f"  {setting.help}")] if setting else []
        case _:
            return []


def _option(names: Sequence[str], value: str | None) -> str:
    return ", ".join(names) + (f" {value}" if value else "")


def _method(name: str, inputs: Sequence[Argument], current: Argument | None, about: str) -> list[HintPart]:
    """A method as one would write it, with the argument that is expected now, and its description."""
    parts = [HintPart(one_line(name))]
    for item in inputs:
        text = f"{item.name}:{item.type.name}"
        if item.default is not None:
            text = f"[{item.name}:{item.type.name}={value_text(item.default)}]"
        if item.direction is Direction.IN_OUT:
            text += "(in/out)"
        parts += [HintPart(" "), HintPart(one_line(text), item is current)]
    return [*parts, HintPart(f"  {one_line(about)}")]
