"""`call`: calls a method on an object, or on many, with the outcome of each."""

from __future__ import annotations

import collections
from collections.abc import Collection, Mapping, Sequence

import attrs

from qmf.errors import CallerError, NotFoundError, QmfError
from qmf.schema import Access, Argument, Method
from qmf.views.cells import Cell
from qmf.views.conditions.parser import parse_words
from qmf.views.conditions.words import Word
from qmf.views.objects import ObjectKey, ObjectView
from qmf.views.text import clean, listing, one_line, plural
from qmf_shell.objects.fields import check_word
from qmf_shell.objects.filtering import refuse_values_alone
from qmf_shell.objects.lookup import AmbiguousError, find_classes, find_object, matching_classes, object_label
from qmf_shell.objects.selecting import find_objects, known_schemas, select_objects
from qmf_shell.objects.value_cells import argument_cells
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.method_arguments import (
    ResolveReference,
    find_method,
    missing_arguments,
    parse_argument,
    parse_arguments,
)
from qmf_shell.parsing.selection import ParsedSelection, keyword_of
from qmf_shell.results.result import Details, Notice, NoticeLevel, Result, Role, Table, TableColumn
from qmf_shell.session.backend import CallOutcome
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names
from qmf_shell.session.prompts import PromptCancelledError


class NoMethodError(NotFoundError):
    """An object has no method of this name; the message lists its methods.

    Attributes:
        target: the object, e.g. ``filesystem /``.
        methods: names of its methods.
    """

    def __init__(self, target: str, name: str, methods: Sequence[str]) -> None:
        super().__init__("method", name, methods)
        self.target = target
        self.methods = methods

    def __str__(self) -> str:
        hint = (
            f"did you mean {listing(self.near)}?" if self.near else f"it has {listing(self.methods, 'and') or 'none'}"
        )
        return f"{self.target} has no method {self.name!r}; {hint}"


class NotConfirmedError(CallerError):
    """A call on many objects was not confirmed."""


@attrs.frozen
class _CallRequest:
    """A call as written.

    Attributes:
        targets: the objects.
        bulk: it was written for many objects, whatever their number.
        method: name of the method as typed.
        words: the inputs.
    """

    targets: Sequence[ObjectView]
    bulk: bool
    method: str
    words: Sequence[Word]


def run(context: Context, args: BoundArguments) -> Result:
    """Call the method, and show its outputs."""
    request = _parse_request(context, args)
    if not request.targets:
        return Notice(f"No objects of {clean(args.texts[0])} match: nothing was called.", NoticeLevel.WARNING)
    first = request.targets[0]
    method = find_method(first.schema.methods, request.method)
    if method is None:
        advice = "setprop ID {name}=VALUE sets it" if _is_writable(first, request.method) else "show ID shows it"
        check_word([first.schema], request.method, "a method", advice)
        raise NoMethodError(object_label(first.identity), request.method, [item.name for item in first.schema.methods])
    if "dry-run" in args.options:
        return _targets(context, method, request.targets)
    arguments = _inputs(context, method, request.words, first)
    if request.bulk:
        _confirm(context, args, method, request.targets)
        return call_objects(context, method, request.targets, arguments)
    number = context.ids.assign(first.identity, first.created)
    outputs = context.backend.call(first, method, arguments)
    title = f"{clean(method.name)} of {number} {object_label(first.identity)}"
    if not outputs:
        return Notice(f"{title}: done", NoticeLevel.GOOD)
    return Details(tuple(argument_cells(context, method.outputs, outputs).items()), title)


def _is_writable(target: ObjectView, name: str) -> bool:
    return any(item.access is Access.RW and item.name.lower() == name.lower() for item in target.schema.properties)


def _method_position(words: Sequence[Word]) -> tuple[int, bool]:
    """The position of the method in the words of a call, and whether its target is a class with ``where`` or ``all``.

    Raises:
        ConditionError: the condition is not valid.
    """
    if len(words) > 1 and keyword_of(words[1]) == "where":
        _, used = parse_words(words[2:], alone=False) if len(words) > 2 else (None, 0)
        return 2 + used, True
    if len(words) > 1 and words[1].text.lower() == "all" and words[1].plain == 3:
        return 2, True
    return 1, False


def _parse_request(context: Context, args: BoundArguments) -> _CallRequest:
    words = args.words
    at, of_class = _method_position(words)
    if len(words) <= at:
        raise CALL.misuse("METHOD is missing", None)
    name, rest = words[at].text, words[at + 1 :]
    if of_class:
        return _CallRequest(_objects_of_class(context, words), True, name, rest)
    text = words[0].text
    if several := _several_ids(text):
        return _CallRequest(find_objects(context, several), True, name, rest)
    try:
        target = find_object(context, text, prefer=lambda schema: find_method(schema.methods, name) is not None)
    except (NotFoundError, AmbiguousError):
        keys = matching_classes(context, text)
        # Of objects of several classes of this name, the error lists the packages.
        if keys and len({item.identity.class_key.package for item in context.objects(class_names(keys))}) < 2:
            reason = f"{text} is a class: write call {text} where CONDITION {name}, or all"
            raise CALL.misuse(reason, 1) from None
        raise
    return _CallRequest([target], False, name, rest)


def _objects_of_class(context: Context, words: Sequence[Word]) -> list[ObjectView]:
    """The objects that ``CLASS where CONDITION`` or ``CLASS all`` at the beginning of the words stands for."""
    condition = parse_words(words[2:], alone=False)[0] if keyword_of(words[1]) == "where" else None
    keys = find_classes(context.classes(), words[0].text)
    if condition is not None:
        refuse_values_alone(condition, known_schemas(context, keys))
    selected = select_objects(context, keys, ParsedSelection(where=condition))
    return [item for one in selected for item in one.objects]


def _several_ids(text: str) -> list[str]:
    """The ids and ranges in a text such as ``101,103`` or ``104-110``; none if it is something else."""
    pieces = [piece for piece in text.split(",") if piece]
    if len(pieces) > 1 and all(piece.replace("-", "").isdigit() for piece in pieces):
        return pieces
    return [text] if "-" in text and text.replace("-", "", 1).isdigit() else []


def _inputs(context: Context, method: Method, words: Sequence[Word], target: ObjectView) -> Mapping[str, object]:
    """The inputs that were given, and those that the user is asked for."""

    def resolve(text: str, item: Argument) -> object:
        return _reference(context, text, item, target)

    if context.prompter is not None:
        for item in missing_arguments(method, words):
            words = [*words, _prompt(context, method, item, resolve)]
    return parse_arguments(method, words, resolve)


def _prompt(context: Context, method: Method, item: Argument, resolve: ResolveReference) -> Word:
    assert context.prompter is not None
    about = f" - {one_line(item.desc)}" if item.desc else ""
    unit = f", {item.unit}" if item.unit else ""
    question = clean(f"{item.name} ({item.type.name}{unit}){about}")
    text = context.prompter.value(question, lambda text: parse_argument(method, item, text, resolve), None)
    word = f"{item.name}={text}"
    return Word(word, 0, len(word), len(item.name) + 1)


def _confirm(context: Context, args: BoundArguments, method: Method, targets: Sequence[ObjectView]) -> None:
    if "yes" in args.options or len(targets) == 1 or context.settings["confirm"] == "off":
        return
    count = plural(len(targets), "object")
    if context.prompter is None:
        raise NotConfirmedError(f"{method.name} would be called on {count}: confirm with call --yes")
    shown = listing(
        [object_label(item.identity) for item in targets[:3]] + (["..."] if len(targets) > 3 else []), "and"
    )
    if not context.prompter.confirm(f"Call {clean(method.name)} on {count} ({shown})?"):
        raise PromptCancelledError("nothing was called")


def _targets(context: Context, method: Method, targets: Sequence[ObjectView]) -> Table:
    columns = (TableColumn("ID", Role.ID), TableColumn("Object", Role.NAME, shortens=True))
    rows = tuple((context.ids.assign(item.identity, item.created), object_label(item.identity)) for item in targets)
    return Table(columns, rows, title=f"{clean(method.name)} would be called on {plural(len(rows), 'object')}")


def _reference(context: Context, text: str, item: Argument, target: ObjectView) -> ObjectKey:
    """The object that an argument names, of the class that the schema names, if it does."""
    classes = []
    if item.references is not None:
        package = item.references.package or target.identity.class_key.package
        classes = find_classes(context.classes(), f"{package}:{item.references.name}")
    return find_object(context, text, classes=classes).identity.key


CALL = Command(
    name="call",
    usage=(
        "call [-y] [-n] ID METHOD [ARGS]",
        "call [-y] [-n] CLASS where CONDITION METHOD [ARGS]",
        "call [-y] [-n] CLASS all METHOD [ARGS]",
    ),
    summary="Call a method on an object, or on many",
    help=(
        "Write arguments in the order of the schema (see `schema CLASS`), or as name=value. Maps and lists are JSON. "
        "Text with blanks must be in quotes, and so must text that looks like name=value but is not. On a terminal you "
        "are asked for missing arguments.",
        "With a class and a condition (as in `list`), or with several ids such as 101,103 or 104-110, the method is "
        "called on all these objects, several at a time, and the outcome of each is shown. You are asked to confirm; "
        "-y confirms. The condition ends where the method follows: join its parts by and, or put them in brackets.",
        "Ctrl-C stops waiting for the answer; the method itself may continue.",
    ),
    examples=(
        ("call 101 echo 7 'hello world'", "arguments in order"),
        ("call 101 echo body=hello sequence=7", "arguments by name"),
        ('call 101 configure {"retries": 3}', "a map"),
        ("call -n queue where msgDepth > 1000 purge", "the queues that would be purged"),
        ('call -y queue where name ~ "^tmp" purge 0 {}', "purge them without being asked"),
        ("call 104-110 sync", "a range of ids"),
    ),
    parameters=(
        Parameter(
            "ID", ParameterKind.TARGET, "short id, name, index, range; or a class with where or all", required=True
        ),
        Parameter("METHOD", ParameterKind.CALL, "one of its methods, and its arguments", required=True, repeated=True),
    ),
    options=(
        Option(("-y", "--yes"), "do not ask before a method is called on many objects"),
        Option(("-n", "--dry-run"), "only show the objects on which it would be called"),
    ),
    options_first=True,
    handler=run,
)


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
