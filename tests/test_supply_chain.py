"""The bill of materials, and the known vulnerabilities of what is installed."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts import supply_chain

REPORT = {
    "dependencies": [
        {"name": "attrs", "version": "1.0", "vulns": []},
        {"name": "other", "version": "2.0", "vulns": [{"id": "CVE-1", "fix_versions": ["2.1"]}, {"id": "CVE-2"}]},
        {"name": "strange", "skip_reason": "not on PyPI"},
    ]
}


def answering(monkeypatch: pytest.MonkeyPatch, answer: str | Exception, errors: str = "") -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        if isinstance(answer, Exception):
            raise answer
        return subprocess.CompletedProcess(command, 1, answer, errors)

    monkeypatch.setattr(subprocess, "run", run)


def test_the_bill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, json.dumps({"dependencies": []}))
    file = tmp_path / "folder" / "bill.json"
    assert supply_chain.main(["--output", str(file)]) == 0
    bill = json.loads(file.read_text())
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "qmf")
    (found,) = [item for item in bill["components"] if item["name"] == "attrs"]
    assert found["purl"] == f"pkg:pypi/attrs@{importlib.metadata.version('attrs')}"
    assert found["licenses"] == [{"license": {"name": "MIT"}}]


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--strict"], 1)])
def test_known_vulnerabilities(
    options: list[str], code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answering(monkeypatch, json.dumps(REPORT))
    assert supply_chain.main(["--output", str(tmp_path / "bill"), *options]) == code
    assert capsys.readouterr().err.splitlines() == [
        "warning: known vulnerability: other 2.0: CVE-1, corrected in 2.1",
        "warning: known vulnerability: other 2.0: CVE-2, corrected in no version",
    ]


@pytest.mark.parametrize(
    ("answer", "errors", "reason"),
    [
        (subprocess.TimeoutExpired("pip-audit", 5), "", "no answer within 5 s"),
        ("", "Traceback\nConnectionError: no route", "ConnectionError: no route"),
        ("", "", "no answer"),
    ],
    ids=["late", "unreachable", "silent"],
)
def test_a_service_that_cannot_be_reached_is_a_warning(
    answer: str | Exception,
    errors: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    answering(monkeypatch, answer, errors)
    assert supply_chain.main(["--output", str(tmp_path / "bill"), "--strict", "--seconds", "5"]) == 0
    assert capsys.readouterr().err == f"warning: known vulnerabilities were not looked up: {reason}\n"
