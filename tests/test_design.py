"""Which package may import which (docs/design.md), no circles, importing starts nothing; tests use nothing private."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from support.sources import blocks, parse

ROOT = Path(__file__).resolve().parents[1]

_DESIGN = tomllib.loads((ROOT / "tests" / "design.toml").read_text(encoding="utf-8"))
#: What each package may import of the project, besides itself and `OPEN`.
ALLOWED: dict[str, set[str]] = {package: set(names) for package, names in _DESIGN["imports"].items()}
OPEN: set[str] = set(_DESIGN["modules"]["open"])
#: The order of folders and modules; see the file.
INNER_ORDER: dict[str, list[str]] = _DESIGN["order"]


def modules(package: str) -> Iterator[Path]:
    return (ROOT / package).rglob("*.py")


Import = ast.Import | ast.ImportFrom


def find_imports(tree: ast.AST, lazy: bool) -> Iterator[tuple[Import, bool]]:
    """The imports of a module, and whether each stands in a function.

    Those in functions are lazy on purpose: they load what is seldom needed, or what costs much, when it is used. The
    others are done, or looked at by a type checker, with the module.
    """
    for node in blocks(tree):
        if isinstance(node, Import):
            yield node, lazy
        else:
            yield from find_imports(node, lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@cache
def all_imports(path: Path) -> list[tuple[Import, bool]]:
    """As `find_imports`; each module is read once."""
    return list(find_imports(parse(path), False))


def imported(path: Path) -> Iterator[tuple[int, str]]:
    for node, _ in all_imports(path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
            continue
        if node.level:
            # Generated packages lie wherever their user wants them, so they know themselves by "." alone.
            assert "models" in path.parts, f"{path}:{node.lineno}: relative import; write the whole name"
            continue
        assert node.module is not None
        if node.module == "qmf":
            yield from ((node.lineno, f"qmf.{alias.name}") for alias in node.names)
        else:
            yield node.lineno, node.module


def module_name(path: Path) -> str:
    """``qmf.bus.link``; of a package's ``__init__.py`` the package."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    parts = parts[1:] if parts[0] in ("codegen", "shell") else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_within(package: str, *, lazy: bool = False) -> dict[str, set[str]]:
    """For each module of a package, which of its modules it imports by name; `lazy`: also in functions."""
    paths = {module_name(path): path for path in modules(package)}
    found: dict[str, set[str]] = {}
    for own, path in paths.items():
        named: set[str] = set()
        for node, in_function in all_imports(path):
            if in_function and not lazy:
                continue
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
                continue
            parent = own.split(".") if path.name == "__init__.py" else own.split(".")[:-1]
            base = ".".join(parent[: len(parent) + 1 - node.level] if node.level else [])
            source = ".".join(filter(None, (base, node.module)))
            members = {f"{source}.{alias.name}" for alias in node.names}
            named |= members & paths.keys()
            if not members <= paths.keys():
                named.add(source)
        found[own] = named & paths.keys() - {own}
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other, in order, the first again at the end; nothing if there are none."""
    done: set[str] = set()

    def search(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module in done:
            return []
        for other in sorted(graph[module]):
            if found := search(other, [*trail, module]):
                return found
        done.add(module)
        return []

    return next(filter(None, (search(module, []) for module in sorted(graph))), [])


def within(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(package + ".") for package in packages)


@pytest.mark.parametrize("package", ALLOWED)
def test_a_package_imports_only_what_the_design_allows(package: str) -> None:
    own = package.rsplit("/", 1)[-1] if not package.startswith("qmf/") else package.replace("/", ".")
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: imports {name}"
        for path in modules(package)
        for line, name in imported(path)
        if name.split(".")[0] in {"qmf", "qmf_codegen", "qmf_shell"}
        and name not in OPEN
        and not within(name, ALLOWED[package] | {own})
    ]
    assert wrong == []


@pytest.mark.parametrize("package", ALLOWED)
def test_modules_of_a_package_import_each_other_in_no_circle(package: str) -> None:
    assert " -> ".join(circle(imports_within(package))) == ""


@pytest.mark.parametrize("package", ALLOWED)
def test_imports_in_functions_make_no_circle(package: str) -> None:
    assert " -> ".join(circle(imports_within(package, lazy=True))) == ""


@pytest.mark.parametrize("package", INNER_ORDER)
def test_folders_inside_a_package_have_an_order(package: str) -> None:
    order = INNER_ORDER[package]

    def place(module: str) -> int:
        inner = module.removeprefix(module_name(ROOT / package / "__init__.py") + ".").split(".")[0]
        return order.index(inner) if inner in order else len(order)

    wrong = [
        f"{own} imports {other}"
        for own, named in imports_within(package, lazy=True).items()
        for other in named
        if place(other) > place(own)
    ]
    assert wrong == []


def test_every_package_has_an_order_of_its_folders() -> None:
    assert set(INNER_ORDER) >= set(ALLOWED) - {"qmf/models"}
    missing = [
        f"{package}/{path.parent.name}"
        for package, order in INNER_ORDER.items()
        for path in (ROOT / package).glob("*/__init__.py")
        if path.parent.name not in order
    ]
    assert missing == []


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": set[str](), "d": {"b"}}
    assert circle(graph) == ["b", "d", "b"]
    assert circle({**graph, "d": {"c"}}) == []


def test_only_the_brokers_management_imports_the_agent() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: imports {name}"
        for path in modules("qmf/broker")
        if "management" not in path.parts
        for line, name in imported(path)
        if within(name, {"qmf.agent", "qmf.models"})
    ]
    assert wrong == []


#: Modules of the broker, besides those of its protocols, that may know one: what puts the broker together and exports
#: it, its options, and the bus inside the process, whose errors have AMQP's conditions as those of every bus.
KNOW_A_PROTOCOL = {
    "__init__.py",
    "server.py",
    "options.py",
    "daemon/cli.py",
    "daemon/options.py",
    "daemon/protocol_options.py",
    "local_bus.py",
}

#: Rooms of the broker that are of a protocol: links between brokers, and to other domains, are AMQP's.
AMQP_ROOMS = {"protocols", "federation", "relay"}


def test_the_core_of_the_broker_knows_no_protocol() -> None:
    broker = ROOT / "qmf" / "broker"
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: imports {name}"
        for path in modules("qmf/broker")
        if path.relative_to(broker).parts[0] not in AMQP_ROOMS
        for line, name in imported(path)
        if within(name, {"qmf.bus.engine", "qmf.bus.transport"})
        or (within(name, {"qmf.broker.protocols"}) and path.relative_to(broker).as_posix() not in KNOW_A_PROTOCOL)
    ]
    assert wrong == []


def test_only_the_command_of_the_web_starts_a_broker() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}: imports {name}"
        for path in modules("qmf/web")
        if path.name != "cli.py"
        for line, name in imported(path)
        if within(name, {"qmf.broker", "qmf.hostagent"})
    ]
    assert wrong == []


def test_only_the_engine_imports_proton_in_the_bus() -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in modules("qmf/bus")
        if "engine" not in path.parts
        for line, name in imported(path)
        if "proton" in name
    ]
    assert wrong == []


def test_every_package_is_in_the_table() -> None:
    found = {
        f"{root}/{path.parent.name}"
        for root in ("qmf", "codegen", "shell")
        for path in (ROOT / root).glob("*/__init__.py")
    }
    assert found == set(ALLOWED)


@pytest.mark.parametrize("package", sorted(set(ALLOWED) - {"qmf/bus"}))
def test_only_the_bus_imports_proton(package: str) -> None:
    wrong = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in modules(package)
        for line, name in imported(path)
        if "proton" in name
    ]
    assert wrong == []


def test_tests_use_nothing_private() -> None:
    """Names of console proxies end with an underscore, those of generated classes begin with ``_qmf_``."""
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.attr}"
        for path in modules("tests")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.endswith("_")
        and not node.attr.startswith("_qmf_")
        and node.attr not in {"_jsc", "_jvm"}  # Spark's
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    ]
    assert wrong == []


def fresh(code: str) -> str:
    """What `code` prints in a fresh interpreter."""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("qmf.schema", ["lxml", "asyncio", "proton", "socket"]),
        ("qmf.protocol", ["asyncio", "socket", "proton", "lxml"]),
        ("qmf.models.host.agent", ["qmf.console", "lxml"]),
        ("qmf.models.host.console", ["qmf.agent", "lxml"]),
        ("qmf_codegen.cli", ["qmf.console", "asyncio"]),
        ("qmf.agent", ["qmf.console", "qmf.broker", "lxml", "jinja2", "psutil"]),
        ("qmf.console", ["qmf.agent", "qmf.broker", "qmf.models", "lxml", "jinja2", "psutil"]),
        # Its own management is loaded when it is asked for.
        ("qmf.broker", ["qmf.agent", "qmf.console", "qmf.models", "qmf.protocol", "lxml"]),
    ],
)
def test_importing_a_package_loads_no_more_than_it_needs(module: str, unwanted: list[str]) -> None:
    # The star, since some packages load what they export when it is first used.
    loaded = fresh(f"from {module} import *\nimport sys; print('\\n'.join(sys.modules))").split()
    assert [name for name in unwanted if name in loaded] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "module",
    ["qmf.agent", "qmf.console", "qmf.broker", "qmf.hostagent", "qmf.testing", "qmf.models.host.agent", "qmf.web"],
)
def test_importing_starts_no_thread(module: str) -> None:
    assert fresh(f"import {module}, threading; print(threading.active_count())") == "1"
