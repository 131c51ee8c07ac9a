"""Fifth pass, Python: templates and views to text."""

from __future__ import annotations

import functools

import jinja2

from qmf.schema import Schema
from qmf_codegen import marks
from qmf_codegen.agent_views import agent_view
from qmf_codegen.console_views import console_view
from qmf_codegen.filters.describe import module_doc
from qmf_codegen.filters.layout import string
from qmf_codegen.imports import AGENT, CONSOLE, SCHEMA, Table, exports, import_lines
from qmf_codegen.naming import names_of
from qmf_codegen.views import ModuleView, PackageView, package_view


def render(schema: Schema, source: str) -> dict[str, str]:
    """The modules of a generated package, by file name.

    Args:
        schema: what they are made of.
        source: name of the schema file.
    """
    names = names_of(schema)
    package = package_view(schema, names, source)
    return {
        "__init__.py": _render("init", package=package),
        "schema.py": _module(package, "Schema", _render("schema", package=package), SCHEMA),
        "agent.py": _classes(package, agent_view(schema, names), AGENT),
        "console.py": _classes(package, console_view(schema, names), CONSOLE),
    }


def _classes(package: PackageView, module: ModuleView, own: Table) -> str:
    return _module(package, module.what, _render("classes", module=module), own)


def _module(package: PackageView, what: str, body: str, own: Table) -> str:
    imports = import_lines(body, own)
    # Classes stand two lines apart from imports, constants one.
    gap = "\n" if body.startswith(("class ", "@")) else ""
    parts = _render("module", package=package, what=what, imports=imports, body=gap + body.rstrip("\n"))
    return parts if imports else parts.replace("annotations\n\n\n", "annotations\n", 1)


def _render(template: str, **values: object) -> str:
    return _environment().get_template(f"{template}.jinja2").render(values)


@functools.cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("qmf_codegen"),
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.filters |= {"exports": exports, "header": marks.python, "module_doc": module_doc, "string": string}
    return environment
