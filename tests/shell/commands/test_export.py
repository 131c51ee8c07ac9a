"""`export`."""

from __future__ import annotations

import csv
import json
import stat
import sys
from pathlib import Path

import attrs
import pytest
import yaml
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem
from shell.line_runner import failure, run


def test_export_csv(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "fs.csv"
    assert run(context, f"export filesystem {path} sort mountPoint").lines == [f"2 objects written to {path}"]
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["index"] for row in rows] == ["/", "/home"]
    assert rows[0]["options"] == '{"ro": true}'
    assert rows[0]["openFilesHigh"] == "20"
    assert rows[0]["label"] == ""
    assert stat.S_IMODE(path.stat().st_mode) & 0o600 == 0o600


def test_export_names_the_broker_of_any_session(context: Context, backend: FakeBackend, tmp_path: Path) -> None:
    backend.records = [attrs.evolve(item, broker="mq1") for item in backend.records]
    run(context, f"export filesystem {tmp_path / 'x.json'} columns threshold")
    assert {row["broker"] for row in json.loads((tmp_path / "x.json").read_text())} == {"mq1"}


def test_export_json_with_columns(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "fs.json"
    run(context, f"export filesystem {path} where mountPoint = /home columns threshold")
    (row,) = json.loads(path.read_text())
    assert row["threshold"] == 90
    assert "options" not in row
    assert row["agent"] == "example.org:host:alpha"


def test_export_overwrites_only_with_force(context: Context, tmp_path: Path) -> None:
    path = tmp_path / "fs.json"
    path.write_text("mine")
    assert "exists already: --force" in failure(context, f"export filesystem {path}")
    assert path.read_text() == "mine"
    run(context, f"export --force filesystem {path}")
    assert len(json.loads(path.read_text())) == 2


def test_export_elsewhere(context: Context, tmp_path: Path) -> None:
    assert "must end in .csv, .json, .jsonl, .yaml or .parquet" in failure(context, "export filesystem x.txt")
    assert "cannot write" in failure(context, f"export filesystem {tmp_path}/no/such.csv")
    assert "no class 'nosuch'" in failure(context, "export nosuch x.csv")


def test_parquet_without_pyarrow(context: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = tmp_path / "fs.parquet"
    error = failure(context, f"export filesystem {path}")
    assert "Parquet needs pyarrow, which is not installed: pip install '.[parquet]'" in error
    assert list(tmp_path.iterdir()) == []


def test_parquet(context: Context, backend: FakeBackend, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    backend.records.append(filesystem("/big", bytesRead=2**64 - 1, threshold=-1, label="a\udcff"))
    path = tmp_path / "fs.parquet"
    run(context, f"export filesystem {path}")
    table = parquet.read_table(path).to_pydict()
    rows = dict(
        zip(table["index"], zip(table["bytesRead"], table["threshold"], table["label"], strict=True), strict=False)
    )
    assert rows["/home"] == (1234567, 90, None)
    assert rows["/big"] == (2**64 - 1, -1, "a\\udcff")
    assert set(table["options"]) == {'{"ro": true}'}


def test_files_have_the_records_of_list(context: Context, tmp_path: Path) -> None:
    listed = [json.loads(line) for line in run(context, "list filesystem", style=OutputStyle.JSON).lines]
    for row in listed:
        del row["id"]
    for name in ("fs.json", "fs.jsonl", "fs.yaml"):
        run(context, f"export filesystem {tmp_path / name}")
    assert json.loads((tmp_path / "fs.json").read_text()) == listed
    assert [json.loads(line) for line in (tmp_path / "fs.jsonl").read_text().splitlines()] == listed
    assert list(yaml.safe_load_all((tmp_path / "fs.yaml").read_text())) == listed
    assert listed[0]["openFiles"] == {"value": 12, "high": 20, "low": 3}
    run(context, f"export filesystem {tmp_path / 'fs.csv'}")
    head, *rows = run(context, "list filesystem", style=OutputStyle.CSV).lines
    with (tmp_path / "fs.csv").open(newline="") as file:
        exported = list(csv.DictReader(file))
    for line, row in zip(rows, exported, strict=True):
        (found,) = csv.DictReader([head, line])
        del found["id"]
        assert found == row


def test_a_class_without_objects_has_headings(context: Context, backend: FakeBackend, tmp_path: Path) -> None:
    backend.records = []
    run(context, f"export filesystem {tmp_path / 'fs.csv'}")
    (line,) = (tmp_path / "fs.csv").read_text().splitlines()
    assert line.startswith("package,class,agent,broker,object,index,created,updated,mountPoint")
    assert "openFiles,openFilesHigh,openFilesLow,latencyCount,latencyMin,latencyMax,latencyAvg" in line
