"""The form that asks for a report about a recorded time."""

from __future__ import annotations

import html

from nicegui import ui

from qmf.web.pages.screens.open_page import OpenPage
from qmf.web.reports.making import ReportQuestion
from qmf.web.reports.routes import PAGE

#: Times up to the end of the recording that are a click away.
_LENGTHS = (("20m", "20 minutes"), ("1h", "hour"), ("6h", "6 hours"), ("1d", "day"), ("7d", "week"))


async def report_screen(visit: OpenPage, question: ReportQuestion) -> None:
    """Build the form."""
    lake = visit.services.options.lake
    with visit.page(
        "Report", "What was recorded about a time: values, alerts, availability, anomalies, changes, calls."
    ):
        if lake is None:
            ui.html(
                '<p class="qmf-problem">There is no recording to report about.</p><p>Record the bus with '
                "<code>qmf-pipeline record --lake DIR</code>, and start <code>qmf-web</code> with "
                "<code>--lake DIR</code>.</p>",
                sanitize=False,
            )
            return
        ui.html(f"<p>Recorded in <code>{html.escape(lake)}</code>. A report takes some seconds.</p>", sanitize=False)
        links = " ".join(f'<a href="{PAGE}?for={length}">{name}</a>' for length, name in _LENGTHS)
        ui.html(f'<h2>The last</h2><p class="qmf-report-links">{links}</p>', sanitize=False)
        ui.html(_form(question), sanitize=False)


def _form(question: ReportQuestion) -> str:
    fields = (
        ("from", "From, in UTC", question.first, "2030-01-31T12:00, or yesterday", ""),
        ("to", "To, in UTC", question.last, "the end of the recording", "A day is included whole."),
        ("for", "Or how long", question.length, "1d", "Before the end, or from the beginning on: 90m, 12h, 7d."),
        ("compare", "Compare with", question.compare, "nothing", "FROM..TO, previous, or how long before: 1d, 7d."),
        ("class", "Classes", question.classes, "all", "Values of these only: memory,qmf.host:disk."),
    )
    rows = "".join(
        f'<label for="report-{name}">{title}</label><div><input id="report-{name}" name="{name}" '
        f'value="{html.escape(value)}" placeholder="{hint}" maxlength="200"'
        f"{f' aria-describedby=report-{name}-about' if about else ''}>"
        f"{f'<small id=report-{name}-about>{about}</small>' if about else ''}</div>"
        for name, title, value, hint, about in fields
    )
    checked = " checked" if question.own else ""
    return (
        f'<h2>Another time</h2><form class="qmf-report" method="get" action="{PAGE}">{rows}'
        f'<span></span><label><input type="checkbox" name="own" value="1"{checked}> with the connections, queues and '
        "bindings of agents and consoles</label>"
        "<span></span><div><button>Make the report</button></div></form>"
    )
