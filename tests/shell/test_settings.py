"""Settings from a file."""

from __future__ import annotations

from pathlib import Path

from qmf_shell.settings import ShellSettings, read_settings

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


def test_config_path() -> None:
    assert config_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/qmf-shell/config.toml")
    assert config_path({"HOME": "/h"}) == Path("/h/.config/qmf-shell/config.toml")
    assert config_path({}) is None
