"""README's programs do what it says: they are run as they stand there."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from support.processes import command, run, running
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.console import Session
from qmf.hostagent import EmbeddedHostAgent

pytestmark = pytest.mark.slow

TEXT = (Path(__file__).resolve().parents[1] / "README.md").read_text(encoding="utf-8")
URL = "amqp://127.0.0.1:5672"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def program(text: str, url: str, folder: Path) -> list[str]:
    """The command that runs a program of the page where its broker is `url`."""
    path = folder / "program.py"
    path.write_text(text.replace(URL, url), encoding="utf-8")
    return [sys.executable, str(path)]


def test_the_consoles(tmp_path: Path) -> None:
    consoles = [text for text in blocks("python") if "qmf.console" in text]
    assert len(consoles) == 2
    with EmbeddedBroker() as broker, EmbeddedHostAgent(broker.url, 1.0):
        for text in consoles:
            done = run(program(text, broker.url, tmp_path))
            assert (done.returncode, done.stderr) == (0, "")
            assert re.search(r"^/\S* \d+(\.\d+)?$", done.stdout, re.MULTILINE), done.stdout


def test_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (schema,) = blocks("xml")
    (agent,) = (text for text in blocks("python") if "qmf.agent" in text)
    (tmp_path / "till.xml").write_text(schema, encoding="utf-8")
    (line,) = re.findall(r"`(qmf-codegen till\.xml [^`]*)`", TEXT)
    name, *arguments = line.split()
    monkeypatch.chdir(tmp_path)
    # The programs of a user find this project installed; these find it as the tests do.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(entry for entry in sys.path if entry))
    done = run([command(name), *arguments])
    assert done.returncode == 0, done.stderr
    with EmbeddedBroker() as broker, running(*program(agent, broker.url, tmp_path)), Session() as session:
        session.addBroker(broker.url)

        def sold() -> bool:
            tills = session.getObjects(_class="till", _package="org.example.till")
            return [(till.number, till.sales > 0) for till in tills] == [(1, True)]

        wait_until(sold, "a till that sells")
