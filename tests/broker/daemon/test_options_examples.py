"""The unit for systemd and the configuration in examples/."""

from __future__ import annotations

import configparser
import shlex
from pathlib import Path

from qmf.broker.daemon.foreign_options import check_foreign_options
from qmf.broker.daemon.options import options_parser, parse

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_the_configuration() -> None:
    options = parse(["--config", str(EXAMPLES / "qmf-broker.conf")])
    assert (options.port, options.max_connections, options.log_enable) == (5672, 500, ["notice+"])
    assert check_foreign_options(options) == ([], [])


def test_the_unit() -> None:
    unit = configparser.ConfigParser(interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read_string((EXAMPLES / "qmf-broker.service").read_text(encoding="utf-8"))
    program, *words = shlex.split(unit["Service"]["ExecStart"])
    assert program.endswith("/qmf-broker")
    options = options_parser().parse_args(words)
    assert (options.config, options.daemon, options.log_time) == ("/etc/qmf-broker.conf", False, False)
    assert unit["Service"]["ExecReload"] == "/bin/kill -HUP $MAINPID"
    assert {"Unit", "Service", "Install"} == set(unit.sections())
