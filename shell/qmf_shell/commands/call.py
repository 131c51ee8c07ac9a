"""`call`: call a method of an object."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.errors import NotFoundError
from qmf.schema import Argument, Method
from qmf_shell.arguments import parse_arguments
from qmf_shell.describe import argument_cells
from qmf_shell.registry import Command, Given, Parameter, Takes
from qmf_shell.results import Details, Level, Message, Result
from qmf_shell.session.context import Context
from qmf_shell.session.lookup import find_classes, find_object, label
from qmf_shell.session.source import Object, ObjectKey
from qmf_shell.text import clean, listing


class NoMethodError(NotFoundError):
    """An object has no method of that name; says which it has.

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


def run(context: Context, given: Given) -> Result:
    """Call and show what comes back."""
    name = given.texts[1]
    target = find_object(context, given.texts[0], wanted=lambda schema: find_method(schema.methods, name) is not None)
    method = find_method(target.schema.methods, name)
    if method is None:
        raise NoMethodError(label(target.known), name, [item.name for item in target.schema.methods])
    arguments = parse_arguments(method, given.words[2:], lambda text, item: _reference(context, text, item, target))
    outputs = context.source.call(target, method, arguments)
    number = context.ids.give(target.known, target.created)
    title = f"{clean(method.name)} of {number} {label(target.known)}"
    if not outputs:
        return Message(f"{title}: done", Level.GOOD)
    return Details(tuple(argument_cells(context, method.outputs, outputs).items()), title)


def find_method(methods: tuple[Method, ...], name: str) -> Method | None:
    """The method called `name`; in another case of letters where no other is meant."""
    exact = [item for item in methods if item.name == name]
    loose = exact or [item for item in methods if item.name.lower() == name.lower()]
    return loose[0] if len(loose) == 1 else None


def _reference(context: Context, text: str, item: Argument, target: Object) -> ObjectKey:
    """The object that an argument names: looked for in the class that the schema says, where it says one."""
    classes = []
    if item.references is not None:
        package = item.references.package or target.known.class_key.package
        classes = find_classes(context.classes(), f"{package}:{item.references.name}")
    return find_object(context, text, classes=classes).known.key


CALL = Command(
    name="call",
    usage=("call ID METHOD [ARGS]",),
    summary="Call a method of an object",
    help=(
        "Arguments stand in the order of the schema (see `schema CLASS`), or as name=value. Maps and lists are JSON. "
        "Text with blanks stands in quotes; so does text that looks like name=value but is none.",
        "Ctrl-C stops waiting for the answer; the method itself may run on.",
    ),
    examples=(
        ("call 101 echo 7 'hello world'", "arguments in order"),
        ("call 101 echo body=hello sequence=7", "arguments by name"),
        ('call 101 configure {"retries": 3}', "a map"),
    ),
    parameters=(
        Parameter("ID", Takes.OBJECT, "short id, name or index", required=True),
        Parameter("METHOD", Takes.METHOD, "one of its methods", required=True),
        Parameter("ARGS", Takes.VALUES, "values, or name=value", many=True),
    ),
    handler=run,
)
