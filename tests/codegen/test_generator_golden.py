"""A small schema and what is made of it, kept beside it: a change of the generator shows as a change of these files."""

from __future__ import annotations

from pathlib import Path

import pytest
from qmf_codegen import generate
from qmf_codegen.cli import main
from support.generated import complaints, imported
from support.schemas import APACHE, SHIPPED

from qmf.errors import ConstraintError, SchemaProblem

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("name", ["__init__.py", "agent.py", "console.py", "schema.py"])
def test_generated_files_are_as_kept(name: str) -> None:
    """After a wanted change: ``qmf-codegen tests/codegen/golden/pump-station.xml -o tests/codegen/golden``."""
    files = {file.path: file.text for file in generate([GOLDEN / "pump-station.xml"])}
    path = Path("pump_station", name)
    assert files[path] == (GOLDEN / path).read_text(encoding="utf-8")


def test_there_are_no_other_files() -> None:
    made = {file.path for file in generate([GOLDEN / "pump-station.xml"])}
    assert made == {path.relative_to(GOLDEN) for path in GOLDEN.rglob("*.py")}


@pytest.mark.slow
@pytest.mark.skipif(not APACHE.is_dir(), reason="Apache's schemas are not there")
def test_real_schemas_make_clean_code(tmp_path: Path) -> None:
    paths = [*sorted(APACHE.glob("*.xml")), *sorted(SHIPPED.glob("*.xml"))]
    assert main([*map(str, paths), "-o", str(tmp_path)]) == 0
    assert len(list(tmp_path.rglob("*.py"))) == 4 * len(paths)
    assert complaints(tmp_path) == ""


@pytest.mark.slow
@pytest.mark.skipif(not APACHE.is_dir(), reason="Apache's schemas are not there")
def test_warnings_are_passed_on() -> None:
    warnings: list[SchemaProblem] = []
    generate([APACHE / "apache-broker.xml"], warnings.append)
    assert len(warnings) == 2


def test_objects_and_events_work_with_the_runtime_base() -> None:
    with imported(GOLDEN, "pump_station", "schema", "agent") as (schema, agent):
        pump = agent.Pump(name="p1", class_=3, limit=9)
        pump.pumped.inc(5)
        pump.lost.inc(2)
        values = pump._qmf_values()
        assert (values["name"], values["class"], values["limit"]) == ("p1", 3, 9.0)
        assert values["delivered"] == 3
        assert {"pressureHigh", "cycleAvg"} <= set(values)
        with pytest.raises(NotImplementedError):
            pump.start(200)
        with pytest.raises(ConstraintError, match=r"pump\.class"):
            agent.Pump(name="p1", class_=6)
        event = agent.OverPressure(pump="p1", pressure=7)
        assert event._qmf_values() == {"pump": "p1", "pressure": 7}
        assert event._qmf_schema_ is schema.OVER_PRESSURE
