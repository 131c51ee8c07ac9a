"""Third pass of Python: templates and views to the text of modules, which is formatted afterwards."""

from __future__ import annotations

import functools

import jinja2

from qmf.schema import Schema
from qmf_codegen import headers
from qmf_codegen.python.agent_views import agent_view
from qmf_codegen.python.console_views import console_view
from qmf_codegen.python.imports import AGENT, CONSOLE, SCHEMA, import_statements
from qmf_codegen.python.naming import names_of
from qmf_codegen.python.views import constants


def render(schema: Schema, source: str) -> dict[str, str]:
    """The modules of a generated package, by file name.

    Args:
        schema: what they are made of.
        source: name of the schema file.
    """
    names = names_of(schema)
    common = {"header": headers.python(source), "package": schema.package}
    return {
        "__init__.py": _render("init", **common),
        "schema.py": _render(
            "schema", **common, imports=import_statements(SCHEMA), constants=constants(schema, names.constants)
        ),
        "agent.py": _render("classes", **common, imports=import_statements(AGENT), module=agent_view(schema, names)),
        "console.py": _render(
            "classes", **common, imports=import_statements(CONSOLE), module=console_view(schema, names)
        ),
    }


def _render(template: str, **values: object) -> str:
    return _environment().get_template(f"{template}.jinja2").render(values)


@functools.cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("qmf_codegen.python"),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
