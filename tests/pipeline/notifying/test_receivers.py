"""Receivers, each with a real server or file: what it gets, and what its refusals mean."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trustme
from pipeline.notifying.servers import HttpLog, MailLog, http_server, smtp_server

from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.notifying.notification import AlertNotification
from qmf.pipeline.notifying.receivers.base import (
    FileConfig,
    NotificationSender,
    RefusedError,
    Secret,
    TlsSettings,
    UnreachableError,
)
from qmf.pipeline.notifying.receivers.http import AlertmanagerConfig, HttpConfig, WebhookConfig
from qmf.pipeline.notifying.receivers.mail import MailConfig

S = 10**9


def alert(id: str, start: int = 60, end: int | None = None, summary: str = "full", **labels: str) -> Alert:
    return Alert(
        id=id, incident=id, labels={"alertname": "disk", "severity": "crit", **labels},
        annotations={"summary": summary}, starts_ns=start * S, ends_ns=None if end is None else end * S,
    )  # fmt: skip


BOTH = AlertNotification(
    integration="ops/0",
    receiver="ops",
    group_key='{}:{alertname="disk"}',
    group_labels={"alertname": "disk"},
    firing=(alert("1", agent="a"),),
    resolved=(alert("2", 60, 90, "was full", agent="b"),),
    at=100 * S,
)


@pytest.fixture
def http() -> Iterator[HttpLog]:
    with http_server() as log:
        yield log


@pytest.fixture
def smtp() -> Iterator[MailLog]:
    with smtp_server() as log:
        yield log


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def server_context(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    return context


@pytest.fixture
def ca_file(authority: trustme.CA, tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(path)
    return path


def send(sender: Any, notification: AlertNotification = BOTH) -> object:
    try:
        return sender.send(notification)
    finally:
        sender.close()


# -- webhook


def test_a_webhook_gets_what_alertmanager_sends(http: HttpLog) -> None:
    send(WebhookConfig(url=f"{http.url}/hook").make_sender())
    ((path, headers, content),) = http.requests
    assert (path, headers["Content-Type"]) == ("/hook", "application/json")
    assert content == {
        "version": "4",
        "groupKey": '{}:{alertname="disk"}',
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "ops",
        "groupLabels": {"alertname": "disk"},
        "commonLabels": {"alertname": "disk", "severity": "crit"},
        "commonAnnotations": {},
        "externalURL": "",
        "alerts": [
            {
                "status": "firing",
                "labels": {"alertname": "disk", "severity": "crit", "agent": "a"},
                "annotations": {"summary": "full"},
                "startsAt": "1970-01-01T00:01:00Z",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "",
                "fingerprint": BOTH.firing[0].fingerprint,
            },
            {
                "status": "resolved",
                "labels": {"alertname": "disk", "severity": "crit", "agent": "b"},
                "annotations": {"summary": "was full"},
                "startsAt": "1970-01-01T00:01:00Z",
                "endsAt": "1970-01-01T00:01:30Z",
                "generatorURL": "",
                "fingerprint": BOTH.resolved[0].fingerprint,
            },
        ],
    }


def test_a_webhook_gets_as_many_alerts_as_it_wants(http: HttpLog) -> None:
    send(WebhookConfig(url=http.url, max_alerts=1).make_sender(), attrs.evolve(BOTH, firing=()))
    send(WebhookConfig(url=http.url, max_alerts=1).make_sender())
    first, second = http.contents
    assert (first["status"], first["truncatedAlerts"], len(first["alerts"])) == ("resolved", 0, 1)
    assert (second["truncatedAlerts"], second["alerts"][0]["status"]) == (1, "firing")


@pytest.mark.parametrize("status", [500, 503, 429])
def test_errors_of_the_server_are_tried_again(http: HttpLog, status: int) -> None:
    http.answers = [status]
    with pytest.raises(UnreachableError, match=f"HTTP {status} .*: the reason"):
        send(WebhookConfig(url=http.url).make_sender())


@pytest.mark.parametrize("status", [400, 401, 404])
def test_refusals_are_final(http: HttpLog, status: int) -> None:
    http.answers = [status]
    with pytest.raises(RefusedError, match=f"HTTP {status} .*: the reason"):
        send(WebhookConfig(url=http.url).make_sender())


def test_a_redirection_that_loses_the_content_is_a_refusal(http: HttpLog) -> None:
    http.answers = [302]
    with pytest.raises(RefusedError, match="elsewhere"):
        send(WebhookConfig(url=http.url).make_sender())
    http.answers = [307]
    send(WebhookConfig(url=http.url).make_sender())
    assert [path for path, _, _ in http.requests][-1] == "/elsewhere"


def test_nobody_is_there() -> None:
    with http_server() as log:
        url = log.url
    with pytest.raises(UnreachableError, match="refused"):
        send(WebhookConfig(url=url).make_sender())


def test_secrets_come_from_files_and_the_environment(
    http: HttpLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "url").write_text(f"{http.url}/secret\n")
    (tmp_path / "token").write_text("T1\n")
    url, token = Secret(tmp_path / "url"), Secret(tmp_path / "token")
    sender = WebhookConfig(url=url, http=HttpConfig(credentials=token)).make_sender()
    sender.send(BOTH)
    (tmp_path / "token").write_text("T2")
    sender.send(BOTH)
    (tmp_path / "token").unlink()
    with pytest.raises(UnreachableError, match="token: No such file"):
        sender.send(BOTH)
    sender.close()
    monkeypatch.setenv("HOOK_PASSWORD", "pw")
    basic = HttpConfig(username="me", password=Secret(variable="HOOK_PASSWORD"))
    send(WebhookConfig(url=http.url, http=basic).make_sender())
    monkeypatch.delenv("HOOK_PASSWORD")
    with pytest.raises(UnreachableError, match="the environment has no HOOK_PASSWORD"):
        send(WebhookConfig(url=http.url, http=basic).make_sender())
    expected = f"Basic {base64.b64encode(b'me:pw').decode()}"
    assert [headers["Authorization"] for _, headers, _ in http.requests] == ["Bearer T1", "Bearer T2", expected]
    assert http.requests[0][0] == "/secret"


def test_tls(server_context: ssl.SSLContext, ca_file: Path) -> None:
    with http_server(server_context) as log:
        send(WebhookConfig(url=log.url, http=HttpConfig(tls=TlsSettings(ca_file=ca_file))).make_sender())
        send(WebhookConfig(url=log.url, http=HttpConfig(tls=TlsSettings(insecure_skip_verify=True))).make_sender())
        assert len(log.requests) == 2
        with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
            send(WebhookConfig(url=log.url).make_sender())


# -- Alertmanager


def test_alertmanager_gets_alerts_with_the_time_until_they_are_forgotten(http: HttpLog) -> None:
    again = attrs.evolve(BOTH, firing=(alert("1", agent="a"), alert("3", 95, agent="b")))
    send(AlertmanagerConfig(url=f"{http.url}/", resend_interval=10 * S).make_sender(), again)
    ((path, _, content),) = http.requests
    assert path == "/api/v2/alerts"
    assert [(item["labels"]["agent"], item["startsAt"], item["endsAt"]) for item in content] == [
        ("a", "1970-01-01T00:01:00Z", "1970-01-01T00:02:20Z"),
        ("b", "1970-01-01T00:01:35Z", "1970-01-01T00:02:20Z"),  # not the end of the incident before
    ]
    assert content[1]["labels"] == {"alertname": "disk", "severity": "crit", "agent": "b"}
    assert content[0]["annotations"] == {"summary": "full"}


# -- file


def test_a_file_gets_lines_wherever_it_was_moved(tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    sender = FileConfig(path=path).make_sender()
    sender.send(BOTH)
    path.rename(tmp_path / "alerts.jsonl.1")
    sender.send(BOTH)
    sender.send(attrs.evolve(BOTH, firing=()))
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["status"], line["labels"]["agent"]) for line in lines] == [
        ("firing", "a"),
        ("resolved", "b"),
        ("resolved", "b"),
    ]
    assert lines[0]["notifiedAt"] == "1970-01-01T00:01:40Z"
    assert (lines[0]["receiver"], lines[0]["groupKey"]) == ("ops", '{}:{alertname="disk"}')
    assert len((tmp_path / "alerts.jsonl.1").read_text().splitlines()) == 2


def test_a_line_that_was_cut_off_stays_alone(tmp_path: Path) -> None:
    path = tmp_path / "alerts.jsonl"
    path.write_text('{"cut": ')
    FileConfig(path=path).make_sender().send(BOTH)
    first, *rest = path.read_text().splitlines()
    assert (first, len([json.loads(line) for line in rest])) == ('{"cut": ', 2)


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="gone/alerts: No such file or directory"):
        FileConfig(path=tmp_path / "gone" / "alerts").make_sender().send(BOTH)


# -- mail

MAIL = MailConfig(to=("ops@example.org", "on-call@example.org"), sender="qmf@example.org", host="127.0.0.1")


def plain(log: MailLog, **more: Any) -> NotificationSender:
    return attrs.evolve(MAIL, port=log.port, require_tls=False, **more).make_sender()


def test_a_mail(smtp: MailLog) -> None:
    assert send(plain(smtp)) is None
    ((sender, to, mail),) = smtp.mails
    assert (sender, to) == ("qmf@example.org", ["ops@example.org", "on-call@example.org"])
    assert mail["Subject"] == "[FIRING:1] disk"
    assert (mail["From"], mail["To"]) == ("qmf@example.org", "ops@example.org, on-call@example.org")
    assert mail["Auto-Submitted"] == "auto-generated"
    text = mail.get_content().replace("\r\n", "\n")
    assert text == (
        "1 firing\n\nfull\n    agent = a\n    alertname = disk\n    severity = crit\n    since 1970-01-01T00:01:00Z\n"
        "\n1 resolved\n\nwas full\n    agent = b\n    alertname = disk\n    severity = crit\n"
        "    since 1970-01-01T00:01:00Z, until 1970-01-01T00:01:30Z\n"
    )


def test_mails_of_a_group_are_one_thread(smtp: MailLog) -> None:
    send(plain(smtp))
    send(plain(smtp), attrs.evolve(BOTH, firing=()))
    (_, _, first), (_, _, second) = smtp.mails
    assert first["References"] == second["References"]
    assert first["Message-ID"] != second["Message-ID"]
    assert second["Subject"] == "[RESOLVED] disk"


def test_templates_headers_and_html(smtp: MailLog) -> None:
    evil = attrs.evolve(BOTH, firing=(alert("1", summary="<b>ä\nBcc: x@example.org", agent="a"),))
    more = {
        "subject": "{{ firing[0].annotations.summary }}",
        "html": "<p>{{ firing[0].annotations.summary }}</p>",
        "headers": (("X-Severity", "{{ commonLabels.severity }}"), ("To", "list@example.org")),
    }
    send(plain(smtp, **more), evil)
    ((_, to, mail),) = smtp.mails
    assert mail["Subject"] == "<b>ä Bcc: x@example.org"
    assert (mail["Bcc"], mail["X-Severity"], mail["To"], len(to)) == (None, "crit", "list@example.org", 2)
    body = mail.get_body(("html",))
    assert body is not None
    assert body.get_content().startswith("<p>&lt;b&gt;ä")
    with pytest.raises(RefusedError, match="template: "):
        send(plain(smtp, subject="{{ 1 / 0 }}"))


def test_starttls_and_a_login(server_context: ssl.SSLContext, ca_file: Path, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("secret\n")
    with smtp_server(server_context, login=True) as log:
        config = attrs.evolve(
            MAIL, port=log.port, tls=TlsSettings(ca_file=ca_file), username="me", password=Secret(password)
        )
        send(config.make_sender())
        assert (log.logins, len(log.mails)) == ([("me", "secret")], 1)
        password.write_text("wrong")
        with pytest.raises(UnreachableError, match="the login is refused: "):
            send(config.make_sender())
        with pytest.raises(UnreachableError, match="CERTIFICATE_VERIFY_FAILED"):
            send(attrs.evolve(config, tls=TlsSettings()).make_sender())


def test_no_mail_without_tls_where_it_is_required(smtp: MailLog) -> None:
    with pytest.raises(UnreachableError, match="STARTTLS"):
        send(attrs.evolve(MAIL, port=smtp.port).make_sender())
    assert smtp.mails == []


def test_what_a_mail_server_answers(smtp: MailLog) -> None:
    smtp.refusals = ["451 later", "554 spam"]
    with pytest.raises(UnreachableError, match="the mail is refused: 451 later"):
        send(plain(smtp))
    with pytest.raises(RefusedError, match="the mail is refused: 554 spam"):
        send(plain(smtp))
    smtp.strangers = {"on-call@example.org"}
    assert send(plain(smtp)) == "refused for on-call@example.org (no such user)"
    smtp.strangers = {"ops@example.org", "on-call@example.org"}
    with pytest.raises(RefusedError, match="all addresses are refused: 550 no such user"):
        send(plain(smtp))


def test_no_mail_server() -> None:
    with smtp_server() as log:
        port = log.port
    with pytest.raises(UnreachableError, match="refused"):
        send(attrs.evolve(MAIL, port=port).make_sender())
