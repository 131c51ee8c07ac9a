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

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import httpx

from qmf._text_files import file_version, read_text
from qmf._toml import TomlSyntaxError, key_lines, parse_toml
from qmf.pipeline.correlate.rules import NOTIFY_TABLES
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.notifying.config import Integration, NotifyConfig, Route, bus_config, with_bus
from qmf.pipeline.notifying.matchers import Matcher, parse_matcher
from qmf.pipeline.notifying.muting import OUTLAST, InhibitRule
from qmf.pipeline.notifying.receivers.base import BusConfig, FileConfig, ReceiverSettings, Secret, TlsSettings
from qmf.pipeline.notifying.receivers.http import RESEND_INTERVAL, AlertmanagerConfig, HttpConfig, WebhookConfig
from qmf.pipeline.notifying.receivers.mail import SUBJECT, TEXT, MailConfig, template_error
from qmf.pipeline.toml_tables import TomlError, TomlErrors, TomlTable, or_default

_SMARTHOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:]+)(?::(\d+))?")
_IMPLICIT_TLS_PORT = 465
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class ConfigTable(TomlTable):
    """One table of a configuration, in which paths are relative to a folder."""

    def missing(self, key: str) -> None:
        self.fail("", f"{key} is missing")

    def matchers(self, key: str, *, needed: bool = False) -> tuple[Matcher, ...]:
        """A list of matchers, or a table of names and values that must be equal."""
        found: list[Matcher] = []
        if isinstance(self._content.get(key), dict):
            table = self.read(key)
            if all(isinstance(value, str) for value in table.values()):
                return tuple(Matcher(name, value) for name, value in table.items())
            self.fail(key, "the values must be texts")
            return ()
        for text in self.texts(key, needed=needed, empty=True) or ():
            try:
                found.append(parse_matcher(text))
            except ValueError as error:
                self.fail(key, str(error))
        return tuple(found)

    def file(self, key: str, *, needed: bool = False) -> Path | None:
        """A path, relative to the folder of the configuration."""
        text = self.text(key, needed=needed)
        return None if text is None else self._folder / Path(text).expanduser()

    def existing(self, key: str) -> Path | None:
        """The path of a file that can be read."""
        path = self.file(key)
        if path is not None and not (path.is_file() and os.access(path, os.R_OK)):
            self.fail(key, f"{path}: {'is not a file that can be read' if path.exists() else 'no such file'}")
        return path

    def secret(self, name: str, *, plain: bool = True) -> Secret | None:
        """A secret, by the keys ``NAME_file`` or ``NAME_env``.

        Unless it is not `plain`, the key ``NAME`` itself is an error that says what to write instead.
        """
        if plain and name in self:
            self.read(name)
            self.fail(name, f"a secret does not belong into this file; use {name}_file or {name}_env")
        file, variable = self.existing(f"{name}_file"), self.text(f"{name}_env")
        if file is not None and variable is not None:
            self.fail(f"{name}_env", f"give either {name}_file or {name}_env")
        if variable is not None and not _WORD.fullmatch(variable):
            self.fail(f"{name}_env", f"must be the name of a variable, not {variable!r}")
        return None if file is None and variable is None else Secret(file, None if file is not None else variable)

    def tables(self, key: str) -> Iterator[ConfigTable]:
        """A list of tables, or one table; true for an empty one."""
        value = self.read(key)
        if value is True or isinstance(value, dict):
            yield self.inner(key, {} if value is True else value)
        elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
            yield from (self.inner(key, item, number) for number, item in enumerate(value, 1))
        elif value is not None:
            self.fail(key, f"must be a table or a list of tables, not {value!r}")


def read_receivers(table: ConfigTable) -> dict[str, tuple[Integration, ...]]:
    """The integrations of each receiver, by its name; one without any gets notifications and drops them."""
    found: dict[str, tuple[Integration, ...]] = {}
    for item in table.tables("receiver"):
        name = item.text("name", needed=True)
        integrations: list[Integration] = []
        for kind, read in _READERS.items():
            for index, settings_table in enumerate(item.tables(kind)):
                settings = read(settings_table)
                settings_table.end()
                if settings is not None:
                    integrations.append(Integration(f"{name}/{kind}/{index}", settings))
        item.end(f"name, {', '.join(_READERS)}")
        if name is not None and name in found:
            item.fail("name", f"there is another receiver {name!r}")
        elif name is not None:
            found[name] = tuple(integrations)
    return found


def _common(table: ConfigTable, settings: type[ReceiverSettings]) -> dict[str, Any]:
    """The attributes that several kinds of receivers have, with their own defaults."""
    defaults = {field.name: field.default for field in attrs.fields(settings)}
    found = {"send_resolved": or_default(table.flag("send_resolved"), defaults["send_resolved"])}
    if "timeout" in defaults:
        found["timeout"] = (table.duration("timeout") or round(defaults["timeout"] * 10**9)) / 10**9
    if "http" in defaults:
        found["http"] = _http(table.table("http_config"))
    return found


def _webhook(table: ConfigTable) -> ReceiverSettings | None:
    secret = table.secret("url", plain=False)
    url = _url(table) if secret is None or "url" in table else None
    if secret is not None and url is not None:
        table.fail("url", "give either url, url_file or url_env")
    config = WebhookConfig(
        url=secret or url or "", max_alerts=table.whole_number("max_alerts") or 0, **_common(table, WebhookConfig)
    )
    return config if secret or url else None


def _alertmanager(table: ConfigTable) -> ReceiverSettings | None:
    url = _url(table)
    config = AlertmanagerConfig(
        url=url or "",
        resend_interval=table.duration("resend_interval") or RESEND_INTERVAL,
        **_common(table, AlertmanagerConfig),
    )
    return config if url else None


def _file(table: ConfigTable) -> ReceiverSettings | None:
    path = table.file("path", needed=True)
    common = _common(table, FileConfig)
    if path is None:
        return None
    if not path.parent.is_dir() or path.is_dir():
        table.fail("path", f"{path}: is a folder" if path.is_dir() else f"{path.parent}: no such folder")
    return FileConfig(path=path, **common)


def _mail(table: ConfigTable) -> ReceiverSettings | None:
    to, sender = table.texts("to", needed=True, empty=True) or (), table.text("from", needed=True)
    host, port = _smarthost(table)
    _check_addresses(table, "to", to)
    _check_addresses(table, "from", (sender,) if sender else ())
    username = table.text("auth_username")
    password = table.secret("auth_password")
    if (username is None) != (password is None):
        table.fail("", "auth_username and auth_password_file or auth_password_env belong together")
    headers = _headers(table.table("headers"))
    subject, text, html = _template(table, "subject"), _template(table, "text"), _template(table, "html")
    return MailConfig(
        to=tuple(address.strip() for item in to for address in item.split(",")),
        sender=sender or "",
        host=host,
        port=port,
        hello=table.text("hello"),
        username=username,
        password=password,
        require_tls=or_default(table.flag("require_tls"), True),
        implicit_tls=or_default(table.flag("implicit_tls"), port == _IMPLICIT_TLS_PORT),
        tls=_tls(table.table("tls_config")),
        headers=headers,
        subject=subject or SUBJECT,
        text=text or TEXT,
        html=html,
        **_common(table, MailConfig),
    )


def _check_addresses(table: ConfigTable, key: str, addresses: Iterable[str]) -> None:
    for address in addresses:
        if "@" not in address or any(sign in address for sign in "\r\n"):
            table.fail(key, f"{address!r} is not an address")


def _template(table: ConfigTable, key: str) -> str | None:
    text = table.text(key)
    if text and (error := template_error(text)):
        table.fail(key, f"template: {error}")
    return text


def _headers(table: ConfigTable) -> tuple[tuple[str, str], ...]:
    found = []
    for name in table.names:
        text = table.text(name)
        if text is None:
            continue
        if not re.fullmatch(r"[!-9;-~]+", name):
            table.fail(name, "is not the name of a header")
        elif error := template_error(text):
            table.fail(name, f"template: {error}")
        found.append((name, text))
    return tuple(found)


def _smarthost(table: ConfigTable) -> tuple[str, int]:
    text = table.text("smarthost", needed=True)
    match = _SMARTHOST.fullmatch(text or "localhost")
    if match is None or not 0 < int(match[2] or 25) < 65536:
        table.fail("smarthost", f"must be HOST:PORT, not {text!r}")
        return "", 25
    return match[1].strip("[]"), int(match[2] or 25)


def _url(table: ConfigTable) -> str | None:
    text = table.text("url", needed=True)
    if text is None:
        return None
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        table.fail("url", f"{text!r}: {error}")
        return None
    if url.scheme not in ("http", "https") or not url.host:
        table.fail("url", f"must be http://... or https://..., not {text!r}")
        return None
    if url.password:
        table.fail("url", "a password does not belong into this file; use http_config.basic_auth")
    return text


def _http(table: ConfigTable) -> HttpConfig:
    basic, authorization = table.table("basic_auth"), table.table("authorization")
    config = HttpConfig(
        username=basic.text("username"),
        password=basic.secret("password"),
        authorization_type=authorization.text("type") or "Bearer",
        credentials=authorization.secret("credentials"),
        tls=_tls(table.table("tls_config")),
        proxy_url=table.text("proxy_url"),
        follow_redirects=or_default(table.flag("follow_redirects"), True),
    )
    if config.username is not None and config.credentials is not None:
        table.fail("", "give either basic_auth or authorization")
    if config.password is not None and config.username is None:
        basic.fail("", "username is missing")
    basic.end("username, password_file, password_env")
    authorization.end("type, credentials_file, credentials_env")
    table.end("basic_auth, authorization, tls_config, proxy_url, follow_redirects")
    return config


def _tls(table: ConfigTable) -> TlsSettings:
    settings = TlsSettings(
        ca_file=table.existing("ca_file"),
        cert_file=table.existing("cert_file"),
        key_file=table.existing("key_file"),
        insecure_skip_verify=table.flag("insecure_skip_verify") or False,
    )
    table.end("ca_file, cert_file, key_file, insecure_skip_verify")
    return settings


_READERS: Mapping[str, Callable[[ConfigTable], ReceiverSettings | None]] = {
    "bus": lambda _table: BusConfig(),
    "webhook": _webhook,
    "alertmanager": _alertmanager,
    "mail": _mail,
    "file": _file,
}


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
