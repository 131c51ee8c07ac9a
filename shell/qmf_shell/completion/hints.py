"""The hint in the bottom toolbar while a line is typed: what is expected at the cursor, in one line.

Never uses the network, never fails.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.schema import Argument, Direction, format_value
from qmf.views.conditions.words import split_partial
from qmf.views.text import one_line
from qmf_shell.completion.analysis import analyse
from qmf_shell.completion.data import (
    CompletionData,
    argument_of,
    classes_of,
    field_of,
    free_inputs,
    method_of,
    setting_called,
)
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
    SettingValue,
    ValueNames,
    ValueOf,
)
from qmf_shell.completion.suggestions import suggest
from qmf_shell.objects.schema_text import about_argument, about_field, about_method
from qmf_shell.parsing.command import AnyCommand
from qmf_shell.parsing.statements import Place, cursor_statement


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
                return _about(found[0].text, found[0].meta)
            return [HintPart("  ".join(_option(item.names, item.value) for item in command.options))]
        case OptionValue(option):
            return _about(option.value or "", option.help)
        case MethodNames():
            found = suggest(request, data)
            if request.prefix and len(found) == 1 and (method := method_of(data, kind.target, found[0].text)):
                return _method(method.name, method.inputs, None, about_method(method))
            return []
        case ArgumentNames():
            return _next_argument(kind, data)
        case ArgumentValue(target, name, argument):
            named = argument_of(data, target, name, argument)
            return _method(named[0].name, named[0].inputs, named[1], about_argument(named[1])) if named else []
        case _:
            return _values(kind, request, data)


def _next_argument(kind: ArgumentNames, data: CompletionData) -> list[HintPart]:
    method = method_of(data, kind.target, kind.method)
    if method is None:
        return []
    free = free_inputs(method, kind)
    current = free[0] if free else None
    return _method(method.name, method.inputs, current, about_argument(current) if current else "complete")


def _values(kind: CompletionKind, request: CompletionRequest, data: CompletionData) -> list[HintPart]:
    match kind:
        case ValueNames() | SettableNames():
            found = suggest(attrs.evolve(request, kind=kind), data) if request.prefix else []
            return _about(found[0].shown, found[0].meta) if len(found) == 1 else []
        case ValueOf(target, name):
            field = field_of(data, target, name)
            return _about(field.name, about_field(field)) if field else []
        case SettableValue(target, name):
            item = next(filter(None, (schema.property(name) for schema in classes_of(data, target))), None)
            return _about(item.name, about_argument(item)) if item else []
        case SettingValue(name):
            setting = setting_called(name)
            return _about(setting.name, setting.help) if setting else []
        case _:
            return []


def _about(name: str, meaning: str) -> list[HintPart]:
    """What is expected now, and what it means."""
    return [HintPart(name, True), HintPart(f"  {one_line(meaning)}")]


def _option(names: Sequence[str], value: str | None) -> str:
    return ", ".join(names) + (f" {value}" if value else "")


def _method(name: str, inputs: Sequence[Argument], current: Argument | None, about: str) -> list[HintPart]:
    """A method as one would write it, with the argument that is expected now, and its description."""
    parts = [HintPart(one_line(name))]
    for item in inputs:
        text = f"{item.name}:{item.type.name}"
        if item.default is not None:
            text = f"[{item.name}:{item.type.name}={format_value(item.default)}]"
        if item.direction is Direction.IN_OUT:
            text += "(in/out)"
        parts += [HintPart(" "), HintPart(one_line(text), item is current)]
    return [*parts, HintPart(f"  {one_line(about)}")]
