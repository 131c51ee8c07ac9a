"""Where a job's configuration of notifications comes from, and whether it was changed."""

from __future__ import annotations

from pathlib import Path

from qmf._text_files import file_version, read_text
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.notifying.config import NotifyConfig, bus_config, with_bus
from qmf.pipeline.notifying.config_file import has_config, parse_config


class ConfigSource:
    """A file of its own, or tables in the file of the rules, or the option `--raise` alone."""

    def __init__(self, *, notify: Path | None, rules: Path, publish: bool) -> None:
        """Name the files.

        Args:
            notify: file of `--notify`; None for the tables in the file of the rules, if it has some.
            rules: file of the rules.
            publish: the bus gets every alert, as of `--raise`.

        Raises:
            PipelineError: both files have a configuration.
        """
        in_rules = has_config(read_text(rules, PipelineError))
        if notify is not None and in_rules:
            raise PipelineError(f"{rules}: has tables for notifications, as {notify}; only one file may have them")
        self._path = rules if in_rules else notify
        self._publish = publish
        self._seen = _version(self._path)

    def read(self) -> NotifyConfig | None:
        """The configuration; None where nobody is to be notified.

        Raises:
            PipelineError: it can't be read, or something is wrong in it.
        """
        self._seen = _version(self._path)
        if self._path is None:
            return bus_config() if self._publish else None
        config = parse_config(read_text(self._path, PipelineError), str(self._path), folder=self._path.parent)
        return with_bus(config) if self._publish else config

    def read_changed(self) -> NotifyConfig | None:
        """As `read`, but None while the file is the same as at the last call, or is being replaced.

        Raises:
            PipelineError: as of `read`; not again before the file changes.
        """
        found = _version(self._path)
        return None if found in (self._seen, None) else self.read()


def _version(path: Path | None) -> tuple[int, int, int] | None:
    return None if path is None else file_version(path)
