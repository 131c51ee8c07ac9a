"""`qmf-host-agent`: arguments, and the ways it ends."""

from __future__ import annotations

import socket

import pytest
from support.processes import command, running
from support.proxy import Proxy

from qmf import __version__
from qmf.broker import EmbeddedBroker
from qmf.hostagent.cli import main


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--interval", "0"], "argument --interval: '0' is not a number of seconds from 0.01 to 86400"),
        (["--interval", "-1"], "argument --interval: '-1' is not a number of seconds from 0.01 to 86400"),
        (["--interval", "nan"], "argument --interval: 'nan' is not a number of seconds from 0.01 to 86400"),
        (["--interval", "soon"], "argument --interval: 'soon' is not a number of seconds from"),
        (["--threshold", "0"], "argument --threshold: '0' is not a whole number from 1 to 100"),
        (["--threshold", "half"], "argument --threshold: 'half' is not a whole number from 1 to 100"),
        (["--processes", "few"], "argument --processes: must be all, none or top:N with N above 0, not 'few'"),
        (["--process", "("], "argument --process: '(' is not a regular expression"),
        (["--frobnicate"], "unrecognized arguments: --frobnicate"),
        (["surplus"], "unrecognized arguments: surplus"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert f"qmf-host-agent: error: {message}" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"qmf-host-agent {__version__}\n"


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for option in (
        "--broker",
        "--interval",
        "--processes",
        "--process",
        "--threshold",
        "--instance",
        "--audit",
        "--allow-signals",
        "--command-lines",
        "--verbose",
        "--version",
    ):
        assert option in text


def test_nobody_there(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as probe:
        # Bound but not listening: nobody else gets the port, and connections are refused.
        probe.bind(("127.0.0.1", 0))
        url = f"amqp://127.0.0.1:{probe.getsockname()[1]}"
        assert main(["-b", url, "--processes", "none", "--no-wait"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith(f"qmf-host-agent: cannot connect to {url}: ")


@pytest.mark.slow
def test_it_waits_for_its_broker() -> None:
    with EmbeddedBroker() as broker, Proxy(broker.url) as proxy:
        proxy.refuse(True)
        with running(command("qmf-host-agent"), "-b", proxy.url, "--processes", "none", "--instance", "x") as agent:
            agent.wait_for(f"Host agent qmf:host:x waits for {proxy.url}")
            proxy.refuse(False)
            agent.wait_for(f"Host agent qmf:host:x on {proxy.url}")
            assert agent.end() == 0
        proxy.refuse(True)
        with running(command("qmf-host-agent"), "-b", proxy.url, "--processes", "none") as agent:
            agent.wait_for("waits for")
            assert agent.end() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(["-b", "http://example.org"], "http://example.org"), (["--instance", ""], "instance")],
)
def test_mistakes_are_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
