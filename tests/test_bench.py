"""What runs the benchmarks: it finds out at once where figures cannot be kept, and a quick look judges none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.processes import run

pytestmark = pytest.mark.slow

BENCH = Path(__file__).resolve().parents[1] / "bench"
#: The program with a benchmark whose figure is not what is wanted of it.
SLOW = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import run
from figures import Figure
run.run = lambda program, quick: [Figure("it took", 2, "s", limit=1)]
sys.exit(run.main())
"""


@pytest.mark.parametrize(("options", "code"), [([], 1), (["--quick"], 0)])
def test_a_figure_that_is_missed(options: list[str], code: int, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    done = run([sys.executable, "-c", SLOW, str(BENCH), "codec", "--json", str(file), *options])
    assert done.returncode == code, done.stderr
    assert "not reached" in done.stdout
    assert '"reached": false' in file.read_text()


def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "nosuch" / "figures.json"
    done = run([sys.executable, "-c", SLOW, str(BENCH), "codec", "--json", str(file)])
    assert (done.returncode, done.stdout) == (2, "")
    assert f"argument --json: cannot write {file}: No such file or directory" in done.stderr


def test_a_file_is_left_alone_until_there_are_figures(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("[]")
    for file in (old, new):
        done = run([sys.executable, "-c", SLOW, str(BENCH), "nosuch", "--json", str(file)])
        assert done.returncode == 2
    assert (old.read_text(), new.exists()) == ("[]", False)
