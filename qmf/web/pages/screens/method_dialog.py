"""Dialogs for calling methods and setting properties: a form from the schema, a confirmation, the answer."""

from __future__ import annotations

import html
from collections.abc import Awaitable, Callable, Mapping, Sequence

import attrs
from nicegui import ui

from qmf.errors import QmfError
from qmf.schema import Method
from qmf.views.objects import ObjectView
from qmf.views.text import clean, one_line
from qmf.web.access.explanations import explain
from qmf.web.pages.screens.open_page import OpenPage, cut_html, show_text
from qmf.web.pages.views.method_effects import is_dangerous, needs_confirmation
from qmf.web.pages.views.method_form import (
    FormField,
    FormFieldKind,
    arguments_text,
    changed_values,
    entered_values,
    form_of,
    property_form,
)
from qmf.web.pages.views.page_texts import object_title, value_text
from qmf.web.problems import Problem
from qmf.web.scopes import Scope

Values = Mapping[str, object]
_WARNING = "This may destroy what cannot be had back, or interrupt others."


def open_method_dialog(visit: OpenPage, obj: ObjectView, method: Method) -> None:
    """Ask for the arguments of a method, confirm if it may change something, call it, and show what it answers."""
    fields = form_of(method)

    async def call(values: Values) -> list[tuple[str, str]]:
        outputs = await visit.call(obj, method.name, values)
        kinds = {item.name: item for item in method.outputs}
        return [
            (
                clean(name),
                value_text(kinds[name].type, value, kinds[name].unit, measured=True)
                if name in kinds
                else clean(str(value)),
            )
            for name, value in outputs.items()
        ]

    _Form(
        visit,
        f"{method.name} of {_title(obj)}",
        one_line(method.desc or ""),
        fields,
        lambda texts: entered_values(fields, texts),
        call,
        f"Call {clean(method.name)} of {_name(obj)}?" if needs_confirmation(method) else "",
        "Call",
        Scope.CALL,
        dangerous=is_dangerous(method),
    ).open()


def open_properties_dialog(visit: OpenPage, obj: ObjectView) -> None:
    """Ask for new values of the properties that a console may set, confirm, and set them."""
    fields = property_form(obj.schema, obj.values)

    async def assign(changed: Values) -> list[tuple[str, str]]:
        await visit.set_properties(obj, changed)
        return []

    _Form(
        visit,
        f"Properties of {_title(obj)}",
        "All changes are made together, or none.",
        fields,
        lambda texts: changed_values(fields, texts),
        assign,
        f"Set properties of {_name(obj)}?",
        "Set",
        Scope.SET,
    ).open()


def _title(obj: ObjectView) -> str:
    return f"{clean(obj.identity.class_key.name)} {object_title(obj)}"


def _name(obj: ObjectView) -> str:
    return f"{_title(obj)} at {clean(obj.identity.key.agent_name)}"


@attrs.define(eq=False)
class _Form:
    """A form in a dialog, then a confirmation, then the answer."""

    _visit: OpenPage
    _title: str
    _desc: str
    _fields: Sequence[FormField]
    _read: Callable[[Mapping[str, str]], Values]
    _carry_out: Callable[[Values], Awaitable[list[tuple[str, str]]]]
    _question: str
    _verb: str
    _scope: Scope
    _dangerous: bool = attrs.field(default=False, kw_only=True)
    _boxes: dict[str, ui.input | ui.textarea | ui.select] = attrs.field(factory=dict, init=False)
    _dialog: ui.dialog = attrs.field(init=False)
    _area: ui.element = attrs.field(init=False)
    _problem: ui.label = attrs.field(init=False)

    def open(self) -> None:
        """Show the form."""
        self._dialog = ui.dialog()
        self._dialog.on("hide", self._dialog.delete)
        with (
            self._dialog,
            ui.element("div").classes("qmf-dialog").props(f'role="dialog" aria-label="{_attr(self._title)}"'),
        ):
            ui.html(f"<h2>{cut_html(clean(self._title))}</h2>", sanitize=False)
            self._area = ui.element("div")
        with self._area:
            self._build_form()
        self._dialog.open()

    def _build_form(self) -> None:
        if self._desc:
            ui.html(f'<p class="qmf-desc">{html.escape(self._desc)}</p>', sanitize=False)
        for field in self._fields:
            self._add(field)
        if not self._fields:
            ui.label("It takes no arguments.").classes("qmf-note")
        self._problem = ui.label().classes("qmf-problem").props('role="alert"')
        self._problem.set_visibility(False)
        with ui.element("div").classes("qmf-bar"):
            ui.element("div").classes("qmf-grow")
            ui.button("Cancel", on_click=self._dialog.close).props("flat no-caps")
            submit = ui.button(self._verb if not self._question else f"{self._verb}…", on_click=self._submit)
            submit.props("no-caps color=negative" if self._dangerous else "no-caps")

    def _add(self, field: FormField) -> None:
        if field.desc:
            ui.label(field.desc).classes("qmf-fielddesc")
        optional = " (may stay empty)" if field.optional else ""
        label = f"{clean(field.name)}{optional}"
        text = self._boxes[field.name].value if field.name in self._boxes else field.initial
        box: ui.input | ui.textarea | ui.select
        if field.kind is FormFieldKind.BOOL:
            choices = ["true", "false"] if not field.optional else ["", "true", "false"]
            box = ui.select(choices, label=label, value=text if text in choices else choices[0])
            box.props(f'outlined dense options-dense hint="{_attr(field.hint)}"')
        elif field.kind in (FormFieldKind.LONG_TEXT, FormFieldKind.JSON):
            box = ui.textarea(label, value=text).props(f'outlined dense autogrow hint="{_attr(field.hint)}"')
        else:
            box = ui.input(label, value=text).props(f'outlined dense hint="{_attr(field.hint)}"')
            box.on("keydown.enter", self._submit)
        if field.kind is FormFieldKind.NUMBER:
            box.props('inputmode="decimal"')
        box.props('autocomplete="off"')
        self._boxes[field.name] = box
        box.validation = lambda text: field.problem(text or "") or None

    async def _submit(self) -> None:
        right = [box.validate() for box in self._boxes.values()]
        if not all(right):
            self._fail("Some values cannot be used.")
            return
        try:
            values = self._read({name: box.value or "" for name, box in self._boxes.items()})
        except QmfError as error:
            self._fail(str(error))
            return
        if self._scope is Scope.SET and not values:
            self._fail("Nothing was changed.")
            return
        texts = {name: box.value for name, box in self._boxes.items()}
        if self._question:
            self._confirm(values, texts)
        else:
            await self._run(values, texts)

    def _confirm(self, values: Values, texts: Mapping[str, str]) -> None:
        self._area.clear()
        with self._area:
            ui.label(self._question).classes("qmf-problem" if self._dangerous else "qmf-question")
            if self._dangerous:
                ui.label(_WARNING).classes("qmf-note")
            ui.html(_listing(arguments_text(values)), sanitize=False)
            with ui.element("div").classes("qmf-bar"):
                ui.element("div").classes("qmf-grow")
                # Enter, pressed once too often, must not destroy anything.
                back = ui.button("Back", on_click=lambda: self._back(texts)).props("flat no-caps")
                yes = ui.button(f"Yes, {self._verb.lower()}", on_click=lambda: self._run(values, texts))
                yes.props("no-caps color=negative" if self._dangerous else "no-caps")
                (back if self._dangerous else yes).props("autofocus")

    def _back(self, texts: Mapping[str, str]) -> None:
        self._area.clear()
        self._boxes.clear()
        with self._area:
            self._build_form()
        for name, text in texts.items():
            self._boxes[name].set_value(text)

    async def _run(self, values: Values, texts: Mapping[str, str]) -> None:
        if not self._visit.still_in():
            return
        self._area.clear()
        with self._area:
            ui.spinner()
            ui.label("Waiting for the agent…").classes("qmf-note")
        problem, answer = "", []
        try:
            answer = await self._carry_out(values)
        except Problem as error:
            problem = error.detail
        except QmfError as error:
            problem = ". ".join([str(error), *await explain(self._visit.site.client, error)])
        if self._area.is_deleted:
            return
        if problem:
            self._back(texts)
            self._fail(problem)
            return
        self._area.clear()
        with self._area:
            ui.label("Done.").classes("good").props('role="status"')
            if answer:
                ui.html(_listing(answer), sanitize=False)
            with ui.element("div").classes("qmf-bar"):
                ui.element("div").classes("qmf-grow")
                ui.button("Close", on_click=self._dialog.close).props("flat no-caps autofocus")

    def _fail(self, text: str) -> None:
        show_text(self._problem, clean(text))


def _listing(items: Sequence[tuple[str, str]]) -> str:
    if not items:
        return '<p class="qmf-note">Without arguments.</p>'
    return f"<dl>{''.join(f'<dt>{html.escape(a)}</dt><dd>{html.escape(b)}</dd>' for a, b in items)}</dl>"


def _attr(text: str) -> str:
    return html.escape(clean(text)).replace("\\", "")
