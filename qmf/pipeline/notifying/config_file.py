"""Reads a configuration of notifications from TOML; the names are those of Alertmanager. All errors have their line.

::

    [route]
    receiver = "operators"
    group_by = ["alertname", "agent"]

    [[route.routes]]
    matchers = ['severity=~"emerg|alert|crit"']
    receiver = "on-call"
    continue = true

    [[receiver]]
    name = "operators"
    mail = {to = "ops@example.org", from = "qmf@example.org", smarthost = "mail.example.org:587"}

    [[receiver]]
    name = "on-call"
    webhook = {url = "https://example.org/page"}

    [[inhibit]]
    source_matchers = ["alertname=agent-silent"]
    target_matchers = ['alertname!="agent-silent"']
    equal = ["agent"]

The tables may be in the file of the rules, where no rule can have their names, or in a file of their own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from qmf._text_files import file_version, read_text
from qmf._toml import TomlSyntaxError, key_lines, parse_toml
from qmf.pipeline.correlate.rules import NOTIFY_TABLES
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.notifying.config import NotifyConfig, Route, bus_config, with_bus
from qmf.pipeline.notifying.config_table import ConfigTable, read_receivers
from qmf.pipeline.notifying.muting import OUTLAST, InhibitRule
from qmf.pipeline.toml_tables import TomlError, TomlErrors, or_default


def load_config(path: str | Path) -> NotifyConfig:
    """Read a file.

    Raises:
        PipelineError: it can't be read, or something is wrong in it: a line for each error, with file and line.
    """
    return parse_config(read_text(path, PipelineError), str(path), folder=Path(path).parent)


def parse_config(text: str, file: str = "notify", *, folder: Path | None = None) -> NotifyConfig:
    """Read a text.

    Args:
        text: TOML.
        file: its name in messages.
        folder: to which paths are relative; None for the current one.

    Raises:
        PipelineError: as of `load_config`.
    """
    config, errors = _read(text, folder or Path(), needs_route=True)
    if config is None:
        raise PipelineError("\n".join(error.at(file) for error in errors))
    return config


def config_errors(text: str, *, folder: Path | None = None, needs_route: bool = False) -> list[TomlError]:
    """What is wrong in the tables of `NOTIFY_TABLES`, by line; other tables are ignored.

    Args:
        text, folder: as of `parse_config`.
        needs_route: it is an error if there is none of the tables.
    """
    return _read(text, folder or Path(), needs_route=needs_route)[1]


def has_config(text: str) -> bool:
    """True where a text, e.g. of rules, has one of the tables."""
    try:
        return bool(NOTIFY_TABLES & parse_toml(text).keys())
    except TomlSyntaxError:
        return False


class ConfigSource:
    """Where a job's configuration comes from: a file of its own, tables in that of the rules, or `--raise` alone."""

    def __init__(self, *, notify: Path | None, rules: Path, publish: bool) -> None:
        """Name the file of `--notify` and that of the rules; `publish` is `--raise`.

        Raises:
            PipelineError: both files have a configuration.
        """
        in_rules = has_config(read_text(rules, PipelineError))
        if notify is not None and in_rules:
            raise PipelineError(f"{rules}: has tables for notifications, as {notify}; only one file may have them")
        self._path = rules if in_rules else notify
        self._publish = publish
        self._seen = self._version()

    def read(self) -> NotifyConfig | None:
        """The configuration; None where nobody is to be notified. Raises as `load_config`."""
        self._seen = self._version()
        if self._path is None:
            return bus_config() if self._publish else None
        config = parse_config(read_text(self._path, PipelineError), str(self._path), folder=self._path.parent)
        return with_bus(config) if self._publish else config

    def read_changed(self) -> NotifyConfig | None:
        """As `read`, but None while the file is the same as at the last call, or is being replaced."""
        found = self._version()
        return None if found in (self._seen, None) else self.read()

    def _version(self) -> tuple[int, int, int] | None:
        return None if self._path is None else file_version(self._path)


def _read(text: str, folder: Path, *, needs_route: bool) -> tuple[NotifyConfig | None, list[TomlError]]:
    try:
        content = {key: value for key, value in parse_toml(text).items() if key in NOTIFY_TABLES}
    except TomlSyntaxError as wrong:
        return None, [TomlError(line, error) for line, error in wrong.errors]
    if not content and not needs_route:
        return None, []
    errors = TomlErrors(key_lines(text))
    table = ConfigTable(content, (), errors, folder)
    receivers = read_receivers(table)
    inhibit = _inhibit(table) if "inhibit" in table else None
    route = None
    if "route" in table:
        root = table.table("route")
        for key in ("matchers", "continue"):
            if key in root:
                root.read(key)
                root.fail(key, "the first route takes all alerts")
        route = _route(root, None, receivers.keys(), 0)
    else:
        table.fail("", "there is no [route]")
    if errors.found or route is None:
        return None, sorted(errors.found)
    return NotifyConfig(route=route, receivers=receivers, inhibit=inhibit), []


def _route(table: ConfigTable, parent: Route | None, known: Any, number: int) -> Route:
    matchers = table.matchers("matchers") + table.matchers("match")  # the older name
    receiver = table.text("receiver", needed=parent is None) or (parent.receiver if parent else None)
    if receiver is not None and receiver not in known:
        table.fail("receiver", f"there is no receiver {receiver!r}")
    default = parent or Route(receiver="")
    route = Route(
        key=f"{parent.key}/{{{','.join(map(str, matchers))}}}/{number}" if parent else "{}",
        receiver=receiver or "",
        matchers=matchers,
        group_by=or_default(table.texts("group_by", empty=True), default.group_by),
        group_wait=or_default(table.duration("group_wait", zero=True), default.group_wait),
        group_interval=or_default(table.duration("group_interval", zero=True), default.group_interval),
        repeat_interval=table.duration("repeat_interval") or default.repeat_interval,
        continues=table.flag("continue") or False,
    )
    children = [_route(child, route, known, index) for index, child in enumerate(table.tables("routes"))]
    table.end("receiver, matchers, group_by, group_wait, group_interval, repeat_interval, continue, routes")
    return attrs.evolve(route, routes=tuple(children))


def _inhibit(table: ConfigTable) -> tuple[InhibitRule, ...]:
    found = []
    for item in table.tables("inhibit"):
        rule = InhibitRule(
            name=item.text("name") or "",
            source=item.matchers("source_matchers", needed=True),
            target=item.matchers("target_matchers", needed=True),
            equal=item.texts("equal", empty=True) or (),
            outlast=or_default(item.duration("outlast", zero=True), OUTLAST),
        )
        item.end("name, source_matchers, target_matchers, equal, outlast")
        found.append(rule)
    return tuple(found)
