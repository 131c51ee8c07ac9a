"""`why` and `may`: what the rules of a broker have denied and allow, by the object of its access control."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qmf.errors import CallerError
from qmf.views.cells import Cell, Instant
from qmf.views.objects import ObjectView
from qmf.views.text import clean, plural
from qmf_shell.objects.lookup import object_label
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.method_arguments import find_method
from qmf_shell.results.result import Details, Notice, Result, Role, Table, TableColumn, in_one
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names

_CLASS = ("qmf.security", "access")


class NoAccessRulesError(CallerError):
    """No broker that is connected explains its rules."""


def run_why(context: Context, args: BoundArguments) -> Result:
    """Show the last denials, and why."""
    inputs = {"userId": args.text(0) or "", "count": WHY.count(args, "number", 1)}
    parts: list[Result] = []
    for obj, found in _answers(context, "explainDenials", inputs):
        denials = found.get("denials")
        for denial in denials if isinstance(denials, list) else ():
            if isinstance(denial, Mapping):
                parts.append(_denial(obj, denial))
    if not parts:
        return Notice("Nothing was denied lately.")
    return in_one(parts)


def run_may(context: Context, args: BoundArguments) -> Result:
    """Show the rules for a user."""
    rows: list[tuple[Cell, ...]] = []
    for obj, found in _answers(context, "listRules", {"userId": args.text(0) or ""}):
        lines = found.get("rules")
        rows += [(clean(str(line)), obj.identity.key.agent_name) for line in (lines if isinstance(lines, list) else ())]
    columns = (TableColumn("Rule"), TableColumn("Broker", Role.FAINT, shortens=True, spare=True))
    title = f"{plural(len(rows), 'rule')}; the first one that matches decides"
    return Table(columns, tuple(rows), title=title, empty="No rule: nothing is allowed.")


def _answers(
    context: Context, method: str, inputs: Mapping[str, object]
) -> Iterator[tuple[ObjectView, Mapping[str, object]]]:
    """What the brokers answer.

    Raises:
        NoAccessRulesError: there is none with rules.
        QmfError: of the call.
    """
    keys = [key for key in context.classes() if (key.package, key.name.lower()) == _CLASS]
    objects = list(context.objects(class_names(keys))) if keys else []
    if not objects:
        raise NoAccessRulesError("no broker here explains its rules: qmf-broker does, with --acl-file")
    for obj in objects:
        found = find_method(obj.schema.methods, method)
        if found is None:
            raise NoAccessRulesError(f"{object_label(obj.identity)} has no method {method}")
        yield obj, context.backend.call(obj, found, inputs)


def _denial(obj: ObjectView, denial: Mapping[str, object]) -> Details:
    def text(name: str) -> str:
        return clean(str(denial.get(name, "")))

    properties = denial.get("properties")
    known = "".join(
        f" {clean(str(name))}={clean(str(value))}"
        for name, value in (properties.items() if isinstance(properties, Mapping) else ())
    )
    passed = denial.get("passedOver")
    pairs: list[tuple[str, Cell]] = [
        ("denied", f"{text('action')} {text('objectType')} {text('objectName')}{known}".rstrip()),
        ("last", Instant(int(str(denial.get("time", 0))))),
        ("times", int(str(denial.get("count", 1)))),
        *(("passed over", clean(str(item))) for item in (passed if isinstance(passed, list) else ())),
        ("decided by", text("decision")),
        ("to allow it", text("change") or "the rules that apply now allow it"),
    ]
    return Details(tuple(pairs), f"{text('userId')} at {clean(obj.identity.key.agent_name)}")


_USER = "whose, with or without realm; all for those of everybody"

WHY = Command(
    name="why",
    usage=("why [-n COUNT] [USER]",),
    summary="Explain what the rules of the broker have denied",
    help=(
        "For the last request of yours, or of USER, that was denied: the rules that were passed over with the reason, "
        "the line that decided, and the smallest change that would allow it. The broker must allow you the method "
        "explainDenials.",
    ),
    examples=(("why", "the last denial"), ("why -n 5 all", "the last five, of everybody")),
    parameters=(Parameter("USER", ParameterKind.TEXT, _USER),),
    options=(Option(("-n", "--number"), "denials to explain, the last one first (1)", "COUNT"),),
    handler=run_why,
)

MAY = Command(
    name="may",
    usage=("may [USER]",),
    summary="Show what the rules of the broker let you do",
    help=("The rules that are for you, or for USER, in their order. The broker must allow you the method listRules.",),
    examples=(("may", "the rules for you"), ("may bob", "those for bob")),
    parameters=(Parameter("USER", ParameterKind.TEXT, "whose, with or without realm"),),
    handler=run_may,
)
