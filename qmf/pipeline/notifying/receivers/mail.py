"""Mail by SMTP, with STARTTLS or TLS from the beginning, and a login."""

from __future__ import annotations

import email.policy
import email.utils
import hashlib
import smtplib
import socket
import ssl
from email.message import EmailMessage
from typing import Any

import attrs
import jinja2
from jinja2.sandbox import SandboxedEnvironment

from qmf.pipeline.notifying.notification import AlertNotification, webhook_payload
from qmf.pipeline.notifying.receivers.base import (
    NotificationSender,
    ReceiverSettings,
    RefusedError,
    Secret,
    TlsSettings,
    UnreachableError,
)

#: Seconds for a connection and for each answer.
TIMEOUT = 30.0

SUBJECT = (
    "[{{ status | upper }}{% if firing %}:{{ firing | length }}{% endif %}] "
    "{{ (groupLabels or commonLabels).values() | join(' ') }}"
)

TEXT = """\
{%- macro show(alert) %}
{{ alert.annotations.summary or alert.labels.alertname }}
{%- for name, value in alert.labels | dictsort %}
    {{ name }} = {{ value }}
{%- endfor %}
{%- for name, value in alert.annotations | dictsort if name != "summary" %}
    {{ name }}: {{ value }}
{%- endfor %}
    since {{ alert.startsAt }}{% if alert.status == "resolved" %}, until {{ alert.endsAt }}{% endif %}
{% endmacro -%}
{% if firing %}{{ firing | length }} firing
{% for alert in firing %}{{ show(alert) }}{% endfor %}
{% endif %}{% if resolved %}{{ resolved | length }} resolved
{% for alert in resolved %}{{ show(alert) }}{% endfor %}{% endif %}"""


@attrs.frozen(kw_only=True)
class MailConfig(ReceiverSettings):
    """Mail."""

    to: tuple[str, ...]  #: and `sender`: addresses
    sender: str
    host: str  #: and `port`: of the SMTP server
    port: int = 25
    hello: str | None = None  #: name of this machine for the server; None for the machine's own
    username: str | None = None  #: and `password`: login; None for none
    password: Secret | None = None
    require_tls: bool = True  #: STARTTLS is used, and it is an error where the server doesn't offer it
    implicit_tls: bool = False  #: the connection is TLS from its beginning
    tls: TlsSettings = attrs.field(factory=TlsSettings)  #: of both
    send_resolved: bool = False
    headers: tuple[tuple[str, str], ...] = ()  #: further headers, templates
    subject: str = SUBJECT  #: and `text`: templates
    text: str = TEXT
    html: str | None = None  #: template of a second form of the text; None for none
    timeout: float = TIMEOUT  #: seconds

    def make_sender(self) -> NotificationSender:
        return MailSender(self)


class MailSender(NotificationSender):
    """Sends mail; a connection for each."""

    def __init__(self, config: MailConfig) -> None:
        self._config = config

    def send(self, notification: AlertNotification) -> str | None:
        message = mail(self._config, notification)
        try:
            with self._connect() as server:
                refused = server.send_message(message, self._config.sender, list(self._config.to))
        except smtplib.SMTPRecipientsRefused as error:
            raise _refusal(max(error.recipients.values()), "all addresses are refused") from error
        except smtplib.SMTPSenderRefused as error:
            raise _refusal((error.smtp_code, error.smtp_error), f"the sender {error.sender} is refused") from error
        except smtplib.SMTPDataError as error:
            raise _refusal((error.smtp_code, error.smtp_error), "the mail is refused") from error
        except smtplib.SMTPAuthenticationError as error:
            raise UnreachableError(f"the login is refused: {_text(error.smtp_error)}") from error
        except smtplib.SMTPResponseException as error:
            raise UnreachableError(f"{error.smtp_code} {_text(error.smtp_error)}") from error
        except (smtplib.SMTPException, ssl.SSLError, OSError) as error:
            raise UnreachableError(str(error) or type(error).__name__) from error
        if refused:
            return "refused for " + ", ".join(f"{to} ({_text(reason)})" for to, (_, reason) in refused.items())
        return None

    def _connect(self) -> smtplib.SMTP:
        config = self._config
        server: smtplib.SMTP
        if config.implicit_tls:
            context = config.tls.context()
            server = smtplib.SMTP_SSL(config.host, config.port, config.hello, timeout=config.timeout, context=context)
        else:
            server = smtplib.SMTP(config.host, config.port, config.hello, timeout=config.timeout)
        try:
            server.ehlo_or_helo_if_needed()
            if config.require_tls and not config.implicit_tls:
                server.starttls(context=config.tls.context())
            if config.username is not None:
                server.login(config.username, config.password.read() if config.password else "")
        except BaseException:
            server.close()
            raise
        return server


def mail(config: MailConfig, notification: AlertNotification) -> EmailMessage:
    """A notification as a mail. Raises `RefusedError` where a template fails."""
    payload = webhook_payload(notification)
    alerts = payload["alerts"]
    values = payload | {
        status: [alert for alert in alerts if alert["status"] == status] for status in ("firing", "resolved")
    }
    message = EmailMessage(email.policy.SMTP)
    message["From"] = config.sender
    message["To"] = ", ".join(config.to)
    message["Subject"] = _text(render(config.subject, values))
    message["Date"] = email.utils.formatdate(notification.at / 10**9, localtime=True)
    message["Message-ID"] = email.utils.make_msgid(domain=config.hello or socket.gethostname() or "localhost")
    # All mails about one group are one thread.
    thread = hashlib.sha256(f"{notification.receiver} {notification.group_key}".encode()).hexdigest()[:32]
    message["References"] = message["In-Reply-To"] = f"<{thread}@qmf-pipeline>"
    message["Auto-Submitted"] = "auto-generated"
    for name, template in config.headers:
        del message[name]
        message[name] = _text(render(template, values))
    message.set_content(render(config.text, values).strip() + "\n")
    if config.html is not None:
        message.add_alternative(render(config.html, values, html=True), subtype="html")
    return message


def render(template: str, values: dict[str, Any], *, html: bool = False) -> str:
    """A template with values. Raises `RefusedError` where it fails."""
    try:
        return SandboxedEnvironment(autoescape=html).from_string(template).render(values)
    except (jinja2.TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise RefusedError(f"template: {error}") from error


def template_error(template: str) -> str | None:
    """What is wrong with the syntax of a template, or None."""
    try:
        SandboxedEnvironment().from_string(template)
    except jinja2.TemplateSyntaxError as error:
        return str(error)
    return None


def _refusal(answer: tuple[int, bytes | str], what: str) -> UnreachableError | RefusedError:
    """A code of 4xx means to try again later."""
    code, text = answer
    message = f"{what}: {code} {_text(text)}"
    return UnreachableError(message) if 400 <= code < 500 else RefusedError(message)


def _text(answer: bytes | str) -> str:
    """A text in one line."""
    text = answer.decode("utf-8", "replace") if isinstance(answer, bytes) else answer
    return " ".join(text.split())
