"""Entry points of the commands. A command is imported only when it runs; a missing extra is reported in one line.

Ctrl-C ends a command without a message, even while it is being imported; so does the end of who reads its output.
"""

from __future__ import annotations

import gc
import importlib
import sys
from types import ModuleType

from qmf._extras import install_hint
from qmf._standard_streams import open_missing_streams, until_unread

#: Exit code if a library that the command needs is not installed.
EXIT_NOT_INSTALLED = 2

#: Exit code after Ctrl-C, as shells use it.
EXIT_INTERRUPTED = 130

#: Libraries that come with extras; any other missing module is a bug.
_OPTIONAL = {
    *("fastapi", "jinja2", "lxml", "nicegui", "opentelemetry", "orjson", "prometheus_client", "prompt_toolkit"),
    *("psutil", "pyarrow", "pyspark", "rich", "starlette", "uvicorn", "yaml"),
}


def acl() -> int:
    """Run `qmf-acl`."""
    return _run("qmf-acl", "qmf.tools.acl.cli", None)


def broker() -> int:
    """Run `qmf-broker`."""
    return _run("qmf-broker", "qmf.broker.daemon.cli", None)


def codegen() -> int:
    """Run `qmf-codegen`."""
    return _run("qmf-codegen", "qmf_codegen.cli", "codegen")


def drain() -> int:
    """Run `drain`."""
    return _run("drain", "qmf.tools.messages.drain", None)


def host_agent() -> int:
    """Run `qmf-host-agent`."""
    return _run("qmf-host-agent", "qmf.hostagent.cli", "host")


def pipeline() -> int:
    """Run `qmf-pipeline`."""
    return _run("qmf-pipeline", "qmf.pipeline.cli", "pipeline", "program")


def printevents() -> int:
    """Run `qmf-printevents`."""
    return _run("qmf-printevents", "qmf_shell.printevents", "shell")


def qpid_config() -> int:
    """Run `qpid-config`."""
    return _run("qpid-config", "qmf.tools.config.cli", None)


def qpid_printevents() -> int:
    """Run `qpid-printevents`."""
    return _run("qpid-printevents", "qmf_shell.published_names", "shell", "printevents")


def qpid_queue_stats() -> int:
    """Run `qpid-queue-stats`."""
    return _run("qpid-queue-stats", "qmf.tools.queue_stats", None)


def qpid_route() -> int:
    """Run `qpid-route`."""
    return _run("qpid-route", "qmf.tools.route.cli", None)


def qpid_stat() -> int:
    """Run `qpid-stat`."""
    return _run("qpid-stat", "qmf.tools.stat.cli", None)


def qpid_tool() -> int:
    """Run `qpid-tool`."""
    return _run("qpid-tool", "qmf_shell.published_names", "shell", "tool")


def shell() -> int:
    """Run `qmf-shell`."""
    return _run("qmf-shell", "qmf_shell.main", "shell")


def spout() -> int:
    """Run `spout`."""
    return _run("spout", "qmf.tools.messages.spout", None)


def stat() -> int:
    """Run `qmf-stat`."""
    return _run("qmf-stat", "qmf_shell.stat", "shell")


def users() -> int:
    """Run `qmf-users`."""
    return _run("qmf-users", "qmf.tools.users.cli", None)


def web() -> int:
    """Run `qmf-web`."""
    return _run("qmf-web", "qmf.web.cli", "web")


def _run(command: str, module: str, extra: str | None, function: str = "main") -> int:
    open_missing_streams()
    try:
        code = until_unread(lambda: _main(module, function))
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if extra is None or missing not in _OPTIONAL:
            raise
        print(f"{command}: {missing} is not installed; get it with: {install_hint(extra)}", file=sys.stderr)
        return EXIT_NOT_INSTALLED
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def _main(module: str, function: str) -> int:
    code = getattr(_import_command(module), function)()
    assert isinstance(code, int)
    return code


def _import_command(module: str) -> ModuleType:
    """The module. What it makes stays: to look among that for garbage takes up to a tenth of the time of importing."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        return importlib.import_module(module)
    finally:
        gc.freeze()
        if enabled:
            gc.enable()
