"""Reads ``[[receiver]]`` tables: a table or list of tables for each kind of integration."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

import httpx

from qmf.pipeline.notifying.config import Integration
from qmf.pipeline.notifying.config_table import ConfigTable
from qmf.pipeline.notifying.receivers.base import ReceiverSettings, TlsSettings
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
from qmf.pipeline.toml_tables import or_default

_SMARTHOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:]+)(?::(\d+))?")
_IMPLICIT_TLS_PORT = 465


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
