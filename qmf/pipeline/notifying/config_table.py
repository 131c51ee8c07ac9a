"""Reads tables of a configuration, such as ``[[receiver]]``. All errors are collected, with their lines."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from qmf._toml import KeyPath
from qmf.pipeline.notifying.config import Integration
from qmf.pipeline.notifying.matchers import Matcher, parse_matcher
from qmf.pipeline.notifying.receivers.base import ReceiverSettings, Secret, TlsSettings
from qmf.pipeline.notifying.receivers.bus import BusConfig
from qmf.pipeline.notifying.receivers.file import FileConfig
from qmf.pipeline.notifying.receivers.http import (
    RESEND_INTERVAL,
    TIMEOUT,
    AlertmanagerConfig,
    HttpConfig,
    WebhookConfig,
)
from qmf.pipeline.notifying.receivers.mail import SUBJECT, TEXT, MailConfig, template_error
from qmf.pipeline.notifying.receivers.mail import TIMEOUT as MAIL_TIMEOUT
from qmf.pipeline.toml_tables import TomlErrors, TomlTable, or_default

_SMARTHOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:]+)(?::(\d+))?")
_IMPLICIT_TLS_PORT = 465
_WORD = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class ConfigTable(TomlTable):
    """One table of a configuration, in which paths are relative to a folder."""

    def __init__(self, content: Mapping[str, Any], path: KeyPath, errors: TomlErrors, folder: Path) -> None:
        """Make a reader of the table at `path`; it adds its errors to `errors`."""
        super().__init__(content, path, errors)
        self._folder = folder

    @property
    def names(self) -> list[str]:
        """The keys that were not read yet."""
        return list(self._content)

    def missing(self, key: str) -> None:
        """Add the error that a key is not there."""
        self.fail("", f"{key} is missing")

    def count(self, key: str, default: int) -> int:
        """A whole number, not negative."""
        value = self.read(key)
        if value is None or (type(value) is int and value >= 0):
            return default if value is None else value
        self.fail(key, f"must be a whole number, 0 or more, not {value!r}")
        return default

    def matchers(self, key: str, *, needed: bool = False) -> tuple[Matcher, ...]:
        """A list of matchers, or a table of names and values that must be equal."""
        if isinstance(self._content.get(key), dict):
            table = self.read(key)
            if all(isinstance(value, str) for value in table.values()):
                return tuple(Matcher(name, value) for name, value in table.items())
            self.fail(key, "the values must be texts")
            return ()
        found: list[Matcher] = []
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

    def table(self, key: str) -> ConfigTable:
        """A table inside this one; an empty one where it is missing."""
        value = self.read(key)
        if value is not None and not isinstance(value, dict):
            self.fail(key, f"must be a table, not {value!r}")
        return self._inner(value if isinstance(value, dict) else {}, (*self._path, key))

    def tables(self, key: str) -> Iterator[ConfigTable]:
        """A list of tables, or one table; true for an empty one."""
        value = self.read(key)
        if value is True:
            value = {}
        if isinstance(value, dict):
            yield self._inner(value, (*self._path, key))
        elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
            for index, item in enumerate(value):
                yield self._inner(item, (*self._path, key, index))
        elif value is not None:
            self.fail(key, f"must be a table or a list of tables, not {value!r}")

    def end(self, known: str = "") -> None:
        """Add an error for each key that was not read; `known` says what there is instead."""
        for key in list(self._content):
            self.fail(key, f"no such key{f'; there are {known}' if known else ''}")

    def _inner(self, content: Mapping[str, Any], path: KeyPath) -> ConfigTable:
        return ConfigTable(content, path, self._errors, self._folder)


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


def _webhook(table: ConfigTable) -> ReceiverSettings | None:
    secret = table.secret("url", plain=False)
    url = _url(table) if secret is None or "url" in table else None
    if secret is not None and url is not None:
        table.fail("url", "give either url, url_file or url_env")
    config = WebhookConfig(
        url=secret or url or "",
        send_resolved=or_default(table.flag("send_resolved"), True),
        max_alerts=table.count("max_alerts", 0),
        timeout=_timeout(table, TIMEOUT),
        http=_http(table.table("http_config")),
    )
    return config if secret or url else None


def _alertmanager(table: ConfigTable) -> ReceiverSettings | None:
    url = _url(table)
    config = AlertmanagerConfig(
        url=url or "",
        send_resolved=or_default(table.flag("send_resolved"), True),
        resend_interval=table.duration("resend_interval") or RESEND_INTERVAL,
        timeout=_timeout(table, TIMEOUT),
        http=_http(table.table("http_config")),
    )
    return config if url else None


def _file(table: ConfigTable) -> ReceiverSettings | None:
    path = table.file("path", needed=True)
    send_resolved = or_default(table.flag("send_resolved"), True)
    if path is None:
        return None
    if not path.parent.is_dir() or path.is_dir():
        table.fail("path", f"{path}: is a folder" if path.is_dir() else f"{path.parent}: no such folder")
    return FileConfig(path=path, send_resolved=send_resolved)


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
        send_resolved=or_default(table.flag("send_resolved"), False),
        headers=headers,
        subject=subject or SUBJECT,
        text=text or TEXT,
        html=html,
        timeout=_timeout(table, MAIL_TIMEOUT),
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


def _timeout(table: ConfigTable, default: float) -> float:
    ns = table.duration("timeout")
    return default if ns is None else ns / 10**9


_READERS: Mapping[str, Callable[[ConfigTable], ReceiverSettings | None]] = {
    "bus": lambda _table: BusConfig(),
    "webhook": _webhook,
    "alertmanager": _alertmanager,
    "mail": _mail,
    "file": _file,
}
