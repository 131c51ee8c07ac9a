"""Settings from a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from qmf_shell.settings import SettingsError, ShellSettings, read_settings

from qmf.connecting import config_path


def test_settings_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('time-format = "short"\ninterval = 0.5\nbrokers = ["mq1", "mq2"]\n[aliases]\nfull = "list queue"\n')
    settings = read_settings(path)
    assert (settings["time-format"], settings.interval) == ("short", 0.5)
    assert settings.brokers == ("mq1", "mq2")
    assert settings.aliases == {"full": "list queue"}
    assert read_settings(tmp_path / "nosuch") == ShellSettings()
    assert read_settings(None) == ShellSettings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('numbers = "exact"\noutput = "xml"\n', r":2: output must be table, json, csv or yaml, not 'xml'"),
        ("[aliases]\nq = 1\n", ":1: aliases must be a table of texts"),
        ("nosuch = 1\n", ":1: no setting 'nosuch'"),
        ("pager = true\n", ":1: pager must be a text or a number"),
        ("\n[contexts.lab]\nuser = 'ann'\n", ":2: context lab: url is missing"),
        ("pager = \n", ":1: Invalid value"),
    ],
)
def test_mistakes_are_named_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=f"^{path}{message}$"):
        read_settings(path)


def test_a_file_that_the_user_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="no such file"):
        read_settings(tmp_path / "nosuch", required=True)


def test_config_path() -> None:
    assert config_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/qmf-shell/config.toml")
    assert config_path({"HOME": "/h"}) == Path("/h/.config/qmf-shell/config.toml")
    assert config_path({}) is None
