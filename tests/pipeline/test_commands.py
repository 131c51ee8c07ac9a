"""`qmf-pipeline`: its subcommands, what each of them says of itself, and wrong usage."""

from __future__ import annotations

import pytest

from qmf.pipeline.cli import main, parsers

NAMES = sorted(parsers()[1])


def ended(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str, str]:
    """The exit code of a command line that runs nothing, and what was printed."""
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    out, err = capsys.readouterr()
    return caught.value.code, out, err


def test_the_subcommands() -> None:
    assert {name.split()[0] for name in NAMES} == {
        "alerts", "audit", "check", "compact", "correlate", "history", "optimize", "record", "report", "retain",
        "rollup", "rules", "silences", "vacuum",
    }  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_each_has_a_help_text_with_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ended(capsys, *name.split(), "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"usage: qmf-pipeline {name} ")
    assert "options:" in out


@pytest.mark.parametrize("name", NAMES)
def test_an_unknown_option_is_named(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = ended(capsys, *name.split(), "--no-such-option")
    assert (code, out) == (2, "")
    assert "--no-such-option" in err or "required" in err


def test_an_unknown_subcommand_is_named_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ended(capsys, "recrod")
    assert code == 2
    assert "invalid choice: 'recrod'" in err
    assert "record" in err.partition("choose from")[2]


@pytest.mark.parametrize("option", ["--confi", "--lak"])
def test_options_are_not_abbreviated(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``--conf`` is of Spark, ``--config`` names a file: what is neither must not become one of them."""
    code, _, err = ended(capsys, "rollup", "--lake", "lake", option, "spark.x=1")
    assert code == 2
    assert f"unrecognized arguments: {option} spark.x=1" in err
