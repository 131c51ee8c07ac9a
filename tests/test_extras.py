"""Messages about missing libraries name an extra that exists, and a command that can be followed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from qmf._extras import install_hint

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
SOURCES = [path for folder in ("qmf", "shell", "codegen") for path in (ROOT / folder).rglob("*.py")]
PAGES = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]


def members(extra: str) -> set[str]:
    """The names in an extra, those of the extras that it includes in their place."""
    found: set[str] = set()
    for entry in EXTRAS[extra]:
        if included := re.fullmatch(r"qmf\[(.*)\]", entry):
            found |= set().union(*(members(name) for name in included[1].split(",")))
        else:
            found.add(re.split(r"[^\w.-]", entry)[0])
    return found


def test_a_hint_is_a_command_for_the_checkout() -> None:
    assert install_hint("web") == "pip install '.[web]' in the checkout of the project"


def hints(text: str) -> set[str]:
    """The extras that a module or a page names to install."""
    named = re.findall(r"pip install '\.\[([\w,]+)\]'|install_hint\(['\"](\w+)['\"]\)", text)
    return {extra for pair in named for extra in "".join(pair).split(",")}


def test_hints_name_extras_that_exist_and_no_package_index() -> None:
    texts = {path.relative_to(ROOT): path.read_text(encoding="utf-8") for path in (*SOURCES, *PAGES)}
    assert [path for path, text in texts.items() if "pip install 'qmf" in text] == []
    unknown = {path: hints(text) - EXTRAS.keys() for path, text in texts.items()}
    assert {path: extras for path, extras in unknown.items() if extras} == {}


def test_all_is_what_every_command_of_the_project_needs() -> None:
    of_users = set(EXTRAS) - {"all", "dev", "gssapi"}  # compiled at the user's, with headers that few have
    assert members("all") == set().union(*(members(extra) for extra in of_users))


def test_the_standard_set_has_no_pipeline_and_no_web_server() -> None:
    assert {"prompt-toolkit", "jinja2", "psutil"} <= members("standard")
    assert not {"pyspark", "duckdb", "pyarrow", "nicegui"} & members("standard")
