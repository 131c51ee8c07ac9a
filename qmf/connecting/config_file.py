"""Where the settings file is: `config.toml` in the XDG configuration folder, read by all commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def config_path(environ: Mapping[str, str]) -> Path | None:
    """The file with settings, in the XDG configuration folder; None without a home folder."""
    return xdg_path(environ, "XDG_CONFIG_HOME", ".config", "config.toml")


def xdg_path(environ: Mapping[str, str], variable: str, below: str, name: str) -> Path | None:
    """A file in a folder of the XDG base directory specification; a relative path in `variable` counts as unset."""
    base = environ.get(variable, "")
    if not base.startswith("/"):
        home = environ.get("HOME")
        if not home:
            return None
        base = f"{home}/{below}"
    return Path(base) / "qmf-shell" / name
