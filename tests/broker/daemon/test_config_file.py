"""Configuration files of the daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmf.broker.daemon.cli import main
from qmf.broker.daemon.config_file import ConfigFileError
from qmf.broker.daemon.options import parse


def config(tmp_path: Path, text: str) -> str:
    path = tmp_path / "broker.conf"
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_options_of_a_file(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        """
        # the broker of the lab
        port = 10000
        log-enable=debug+:Broker   # for now
        log-enable=notice+
        daemon=yes
        trace=no
        mgmt-enable=no
        """,
    )
    options = parse(["--config", path])
    assert (options.port, options.daemon, options.trace, options.mgmt_enable) == (10000, True, False, False)
    assert options.log_enable == ["debug+:Broker", "notice+"]


def test_the_command_line_goes_before_the_file(tmp_path: Path) -> None:
    assert parse(["--port", "1", "--config", config(tmp_path, "port=2")]).port == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("port=1\nfrob=2", r":2: there is no option 'frob'"),
        ("config=x", "no option 'config'"),
        ("port", "expected port=value"),
        ("daemon=perhaps", "daemon: 'perhaps' is neither yes nor no"),
    ],
)
def test_wrong_lines(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigFileError, match=reason):
        parse(["--config", config(tmp_path, text)])


def test_wrong_values(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse(["--config", config(tmp_path, "port=many")])
    assert "'many' is not a port" in capsys.readouterr().err


def test_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err == f"qmf-broker: {tmp_path}/none: No such file or directory\n"
