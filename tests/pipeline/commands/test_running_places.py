"""Each job where it runs: the table of the page has the jobs of the code, and each cell of it has a test here."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from pipeline.correlation import RULES, fill
from pipeline.lakes import HERE, Shop
from pipeline.tills import Till

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

import deltalake

from qmf.pipeline.cli import main
from qmf.pipeline.commands import COMMANDS
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import CHECKPOINT
from qmf.pipeline.report.collect import ReportOptions, collect
from qmf.pipeline.report.source import end_of_recording
from qmf.pipeline.report.time_range import parse_time_range
from qmf.pipeline.runners.runner import Runner
from qmf.pipeline.runners.spark import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PAGE = (Path(__file__).parents[3] / "docs" / "pipeline.md").read_text(encoding="utf-8")

#: The jobs of the page's table, each of which runs in both places, and whether they have streams, which do as well.
JOBS = {
    name: bool(stream)
    for name, stream in re.findall(r"^\| `(\w+)` \| yes \| yes \| (?:(yes) \| yes|- \| -) \|", PAGE, re.MULTILINE)
}

#: Times of a run, and names of files, which differ from one run to the next.
_DIFFERENT = re.compile(r"[\d.]+ s\b")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A lake that no test changes: `optimize` and `check` have copies."""
    made = Shop(tmp_path_factory.mktemp("places") / "lake")
    fill(made)
    for number in range(3):
        made.put((100 + number, 10 + number), (130 + number, 40), object=f"till-{number}")
    Till(made, "one").publish(150, name="one", limit=1)
    made.beat(155, 165)
    return made


@pytest.fixture
def on_spark(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands with a master run on the session that tests share."""

    @contextmanager
    def shared(_options: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("qmf.pipeline.commands.running.spark_session", shared)


def rows(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The rows of all Delta tables in a folder, each in an order, with all columns; without those of states."""
    found = {}
    for log in sorted(folder.rglob("_delta_log")):
        if "_state" in log.parts:
            continue
        table = deltalake.DeltaTable(str(log.parent)).to_pyarrow_table()
        found[str(log.parent.relative_to(folder))] = sorted(table.to_pylist(), key=str)
    return found


def rules_file(folder: Path) -> list[str]:
    path = folder / "rules.toml"
    path.write_text(RULES)
    return ["--rules", str(path)]


def write(shop: Shop, tmp_path: Path, name: str, where: str, *more: str) -> None:
    """Run a job that writes tables, into ``FOLDER/out``."""
    folder = tmp_path / where
    folder.mkdir()
    own = rules_file(folder) if name == "correlate" else []
    master = ["--master", "local[2]"] if where == "spark" else []
    assert main([name, "--lake", shop.root, "--out", str(folder / "out"), *own, *more, *master]) == 0


def optimized_and_checked(shop: Shop, tmp_path: Path, name: str, where: str) -> None:
    """Run a job on a copy of the lake, in ``FOLDER/out``, that has a file that is lost and one that is not needed."""
    out = tmp_path / where / "out"
    shutil.copytree(shop.root, out)
    if name == "check":
        Path(next(iter(DeltaLake(str(out)).table("heartbeats").snapshot().files)).url).unlink()
    master = ["--master", "local[2]"] if where == "spark" else []
    assert main([name, "--lake", str(out), *master]) == (2 if name == "check" else 0)
    if name == "check":
        shutil.rmtree(out)  # nothing was changed, and a file is missing


WRITING: Mapping[str, Callable[..., None]] = {
    "rollup": write,
    "audit": write,
    "history": write,
    "correlate": write,
    "optimize": optimized_and_checked,
    "check": optimized_and_checked,
}


def test_the_table_of_the_page_has_all_jobs() -> None:
    assert set(JOBS) == {command.name for command in COMMANDS if command.spark} - {"compact"}
    assert {name for name in JOBS if name not in WRITING} == {"report"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stream"),
    [
        (name, stream)
        for name, has_streams in JOBS.items()
        for stream in ([False, True] if has_streams else [False])
        if name in WRITING
    ],
)
def test_a_job_does_the_same_in_both_places(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str], on_spark: None, name: str, stream: bool
) -> None:
    printed = []
    for where in ("process", "spark"):
        WRITING[name](shop, tmp_path, name, where, *(["--stream", "--once"] if stream else []))
        captured = capsys.readouterr()
        place = "on Spark at local[2]" if where == "spark" else "in this process"
        assert captured.err.splitlines()[0] == f"qmf-pipeline: {name} runs {place}"
        text = _DIFFERENT.sub("", captured.out.replace(str(tmp_path / where), "FOLDER"))
        printed.append(sorted(text.splitlines()))
    assert printed[0] == printed[1]
    assert rows(tmp_path / "process") == rows(tmp_path / "spark")
    assert name == "check" or any(rows(tmp_path / "spark").values())


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.usefixtures("on_spark")
@pytest.mark.parametrize("name", [name for name, has_streams in JOBS.items() if has_streams])
def test_a_stream_goes_on_where_it_ended(shop: Shop, tmp_path: Path, name: str) -> None:
    own = rules_file(tmp_path) if name == "correlate" else []

    def run() -> None:
        for where, master in (("process", []), ("spark", ["--master", "local[2]"])):
            command = [name, "--lake", shop.root, "--out", str(tmp_path / where), "--stream", "--once", *own]
            assert main([*command, *master]) == 0

    run()
    shop.put((200, 50), object="till-1", queue=7, name="one")
    shop.beat(210)
    # Its tables say what it has read: it needs no checkpoint, and files that were combined hold nothing new.
    for checkpoint in list((tmp_path / "spark").rglob(CHECKPOINT)):
        shutil.rmtree(checkpoint)
    for path in shop.lake.paths():
        shop.lake.table(path).delta().optimize.compact()
    run()
    assert rows(tmp_path / "process") == rows(tmp_path / "spark")


@pytest.mark.slow
def test_a_report_is_the_same_in_both_places(shop: Shop, spark: SparkSession) -> None:
    def report(runner: Runner) -> object:
        about = parse_time_range(None, None, "1h", end_of_recording(runner, shop.root))
        return collect(runner, ReportOptions(lake=shop.root, own=True), about, lambda _line: None)

    expected = report(HERE)
    assert report(SparkRunner(spark, task_rows=10)) == expected


@pytest.mark.slow
@pytest.mark.usefixtures("on_spark")
def test_the_page_of_a_report_is_the_same_in_both_places(
    shop: Shop, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qmf.pipeline.commands.report.time", SimpleNamespace(time_ns=lambda: 10**18))
    pages: dict[str, str] = {}
    for master, place in ([], "in this process"), (["--master", "local[2]"], "on Spark at local[2]"):
        output = tmp_path / f"report-{len(pages)}.html"
        own = ["--for", "1h", "--own", "--output", str(output), *master]
        assert main(["report", "--lake", shop.root, *own]) == 0
        assert capsys.readouterr().err.splitlines()[0] == f"qmf-pipeline: report runs {place}"
        pages[place] = output.read_text()
    assert "till" in pages["in this process"]
    assert pages["in this process"] == pages["on Spark at local[2]"]


@pytest.mark.slow
@pytest.mark.usefixtures("on_spark")
def test_readers_that_choose_rows_find_what_spark_wrote(shop: Shop, tmp_path: Path, spark: SparkSession) -> None:
    import duckdb
    import polars

    from qmf.pipeline.spark import sinks

    for name in ("correlate", "rollup", "audit"):
        (tmp_path / name).mkdir()
        write(shop, tmp_path / name, name, "spark")
    for folder, columns in (
        (tmp_path / "correlate/spark/out/batch", ("rule", "subject", "at_ns", "severity")),
        (tmp_path / "rollup/spark/out/batch", ("class", "object", "member", "window_start")),
        (tmp_path / "audit/spark/out/lives", ("agent", "object", "first_seen_ns")),
        (tmp_path / "audit/spark/out/events", ("agent", "class", "time_ns")),
    ):
        delta = deltalake.DeltaTable(str(folder))
        found = delta.to_pyarrow_table().to_pylist()
        frame = sinks.read_table(spark, LakeTable(str(folder)))
        assert found
        assert frame is not None
        for column in columns:
            value = found[0][column]
            expected = sum(row[column] == value for row in found)
            assert delta.to_pyarrow_table(filters=[(column, "=", value)]).num_rows == expected
            assert polars.scan_delta(str(folder)).filter(polars.col(column) == value).collect().height == expected
            assert frame.where(frame[column] == value).count() == expected
            dataset = delta.to_pyarrow_dataset()
            assert dataset is not None
            query = f'select count(*) from dataset where "{column}" = ?'
            assert duckdb.execute(query, [value]).fetchall() == [(expected,)]
