"""Tests are found from the product's paths: `qmf/bus/client/bus_link.py` has `tests/bus/client/test_bus_link.py`.

A test module is named after the module or the folder that it is about, and lies where that lies: ``test_<name>.py``, or
``test_<name>_<aspect>.py`` where there are several; one about a whole folder lies in it or beside it. Folders of tests
with another purpose are named here.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest
from support.scheduling import NAMED, SESSIONS
from support.sources import parse, statements

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
TESTS = ROOT / "tests"

#: Rooms of the product that lie elsewhere than in ``qmf/``.
ROOMS = {"codegen": ROOT / "codegen" / "qmf_codegen", "shell": ROOT / "shell" / "qmf_shell"}

#: Folders whose tests are about something else than one module or one folder, and what that is.
OTHER_PURPOSES = {
    "broker/foreign": "AMQP clients of others, by `make foreign`",
    "docs": "the pages of the documentation",
    "e2e": "all programs together",
    "examples": "the programs of `examples/`",
    "interop": "agents and consoles of others",
    "messaging/contract": "what every broker does, by `make contract`",
    "messaging/failures": "what a peer can do to programs",
    "shell/terminal": "the real program in a pseudo-terminal",
}

#: Test modules about the repository itself.
OF_THE_REPOSITORY = {
    "test_assertions.py",
    "test_bench.py",
    "test_contract_table.py",
    "test_design.py",
    "test_foreign_clients.py",
    "test_forks.py",
    "test_function_sizes.py",
    "test_glossary.py",
    "test_mirror.py",
    "test_names.py",
    "test_pages.py",
    "test_root.py",
    "test_setup.py",
    "test_supply_chain.py",
}

#: Modules that are tested through others, in other rooms or in programs of their own, and the tests that do it.
TESTED_ELSEWHERE = {
    "qmf/agent/publishing/event_raiser.py": "tests/agent/publishing/test_object_writer.py",
    "qmf/broker/nodes/xquery_worker.py": "tests/broker/nodes/test_xquery_process.py",
    "qmf/bus/waiting.py": "tests/agent/test_agent_waiting.py",
    "qmf/connecting/arguments.py": "tests/connecting/test_options.py",
    "qmf/connecting/loopback.py": "tests/broker/daemon/test_cli.py",
    "qmf/connecting/process_list.py": "tests/connecting/test_options.py",
    "qmf/messaging/log.py": "tests/messaging/test_util.py",
    "qmf/pipeline/cli.py": "tests/pipeline/test_commands.py",
    "qmf/pipeline/notifying/overview.py": "tests/pipeline/notifying/test_notifier.py",
    "qmf/pipeline/toml_tables.py": "tests/pipeline/notifying/test_config.py",
    "qmf/protocol/objects/encoder.py": "tests/agent/publishing/test_object_writer.py",
    "qmf/protocol/objects/merged_values.py": "tests/console/aio/objects/test_values_encoded.py",
    "qmf/testing/fixtures.py": "tests/testing/test_fake_agent.py",
    "qmf/testing/in_thread.py": "tests/testing/test_recorder.py",
    "qmf/testing/manual_clock.py": "tests/testing/test_fake_agent.py",
    "shell/qmf_shell/commands/catalogue.py": "tests/shell/commands/test_help.py",
}


def product_folder(folder: Path) -> Path:
    """The folder of the product that a folder of tests mirrors."""
    room, *inner = folder.relative_to(TESTS).parts or ("",)
    return ROOMS.get(room, ROOT / "qmf" / room).joinpath(*inner)


def subjects(folder: Path) -> set[str]:
    """The modules and folders of a folder of the product, without leading underscores, and the folder itself."""
    modules = {path.stem for path in folder.glob("*.py") if path.name != "__init__.py"}
    folders = {path.parent.name for path in folder.glob("*/__init__.py")}
    return {name.lstrip("_") for name in modules | folders | {folder.name}}


def is_about(test_module: Path, names: set[str]) -> bool:
    """True if a test module is named after one of these."""
    own = test_module.stem.removeprefix("test_")
    return any(own == name or own.startswith(f"{name}_") for name in names)


@cache
def mirrored() -> dict[Path, Path]:
    """All test modules that are about a part of the product, with the folder that they mirror."""
    purposes = tuple(TESTS / folder for folder in OTHER_PURPOSES)
    return {
        path: product_folder(path.parent)
        for path in sorted(TESTS.rglob("test_*.py"))
        if not any(path.is_relative_to(folder) for folder in purposes)
        and not (path.parent == TESTS and path.name in OF_THE_REPOSITORY)
    }


def test_each_test_module_is_named_after_what_it_tests() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}: no module and no folder of {folder.relative_to(ROOT)} is named so"
        for path, folder in mirrored().items()
        if not is_about(path, subjects(folder))
    ]
    assert wrong == []


@cache
def product() -> dict[str, Path]:
    """The modules with logic of their own by their names: no models, which are generated, no ``__init__``."""
    found = {}
    for base in (ROOT / "qmf", *ROOMS.values()):
        for path in base.rglob("*.py"):
            inner = path.relative_to(base.parent).with_suffix("").parts
            if inner[1] != "models" and path.name not in {"__init__.py", "__main__.py", "_version.py"}:
                found[".".join(inner)] = path
    return found


@cache
def imports(name: str) -> set[str]:
    """The modules of the product that a module imports, also in functions."""
    found: set[str] = set()
    for node in statements(parse(product()[name])):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found & product().keys()


@cache
def by_folder() -> dict[Path, list[Path]]:
    """The test modules that mirror each folder of the product."""
    found: dict[Path, list[Path]] = {}
    for path, folder in mirrored().items():
        found.setdefault(folder, []).append(path)
    return found


def has_tests(path: Path) -> bool:
    """True if there are test modules of this module."""
    return any(is_about(test, {path.stem.lstrip("_")}) for test in by_folder().get(path.parent, []))


def folder_has_tests(folder: Path) -> bool:
    """True if there are test modules of a folder as a whole."""
    beside = by_folder().get(folder, []) + by_folder().get(folder.parent, [])
    return any(is_about(test, {folder.name}) for test in beside)


def room(path: Path) -> str:
    return path.relative_to(ROOT).parts[1]


def with_tests() -> set[str]:
    """The modules that have tests: own ones, or those of neighbours of which they are a part."""
    own = {name for name, path in product().items() if has_tests(path)}
    # A part of a module that has tests: in the same folder through others, elsewhere in the room directly.
    found, waiting = set(own), list(own)
    while waiting:
        name = waiting.pop()
        parts = {part for part in imports(name) if product()[part].parent == product()[name].parent} - found
        found |= parts
        waiting += parts
    found |= {part for name in own for part in imports(name) if room(product()[part]) == room(product()[name])}
    return found | {name for name, path in product().items() if folder_has_tests(path.parent)}


def test_each_module_of_the_product_has_tests_where_one_looks_for_them() -> None:
    without = sorted(product()[name].relative_to(ROOT).as_posix() for name in product().keys() - with_tests())
    assert [path for path in without if path not in TESTED_ELSEWHERE] == []


@pytest.mark.parametrize("path", TESTED_ELSEWHERE)
def test_what_is_tested_elsewhere_needs_it(path: str) -> None:
    assert (ROOT / path).is_file()
    assert (ROOT / TESTED_ELSEWHERE[path]).is_file()
    assert not has_tests(ROOT / path)


def test_the_named_folders_and_files_exist() -> None:
    missing = [folder for folder in OTHER_PURPOSES if not (TESTS / folder).is_dir()]
    missing += [name for name in OF_THE_REPOSITORY if not (TESTS / name).is_file()]
    missing += [path for path in NAMED if not (ROOT / path.partition("::")[0]).exists()]
    assert missing == []


@pytest.mark.parametrize(
    ("session", "needs"),
    [
        ("Spark", re.compile(r'\bspark: SparkSession|getfixturevalue\("spark"\)')),
        ("Browser", re.compile(r"\bbrowser: Browser")),
    ],
    ids=["Spark", "Browser"],
)
def test_tests_with_spark_or_a_browser_share_a_session(session: str, needs: re.Pattern[str]) -> None:
    """What is not named would start one of its own, in whichever process it runs."""
    named = {path.partition("::")[0] for path in SESSIONS[session]}
    found = {path for path in TESTS.rglob("test_*.py") if needs.search(path.read_text(encoding="utf-8"))}
    alone = [name for path in found if not (name := path.relative_to(ROOT).as_posix()).startswith(tuple(named))]
    assert found
    assert alone == []
