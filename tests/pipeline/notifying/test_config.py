"""Configurations: what they mean, and every error with its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.notifying.config import Route, bus_config, with_bus
from qmf.pipeline.notifying.config_file import config_errors, has_config, load_config, parse_config
from qmf.pipeline.notifying.matchers import parse_matchers
from qmf.pipeline.notifying.muting import InhibitRule, default_inhibition
from qmf.pipeline.notifying.receivers.base import BusConfig, FileConfig, Secret
from qmf.pipeline.notifying.receivers.http import AlertmanagerConfig, WebhookConfig
from qmf.pipeline.notifying.receivers.mail import MailConfig

S = 10**9

WHOLE = """
[route]
receiver = "ops"
group_by = ["alertname", "agent"]
group_wait = "10s"
group_interval = "1m"
repeat_interval = "3h"

[[route.routes]]
receiver = "page"
matchers = ['severity=~"crit|emerg"', "agent!=test"]
continue = true

[[route.routes]]
match = {team = "db"}
group_wait = 0
[[route.routes.routes]]
receiver = "page"
group_by = "..."

[[receiver]]
name = "ops"
bus = true
file = {path = "alerts.jsonl"}
[[receiver.mail]]
to = ["a@example.org, b@example.org", "c@example.org"]
from = "qmf@example.org"
smarthost = "mail.example.org:587"
auth_username = "me"
auth_password_file = "password"
send_resolved = true
headers = {X-Kind = "{{ status }}"}
[[receiver.mail]]
to = "d@example.org"
from = "qmf@example.org"
smarthost = "[::1]:465"

[[receiver]]
name = "page"
webhook = [{url = "http://one", send_resolved = false, max_alerts = 5}, {url_env = "HOOK"}]
[receiver.alertmanager]
url = "https://am:9093"
resend_interval = "30s"
http_config.basic_auth = {username = "u", password_env = "P"}

[[inhibit]]
source_matchers = "alertname=dead"
target_matchers = ["severity!=crit"]
equal = ["agent"]
outlast = "5s"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "password").write_text("secret\n")
    return tmp_path


def test_a_whole_configuration(folder: Path) -> None:
    (folder / "notify.toml").write_text(WHOLE)
    config = load_config(folder / "notify.toml")
    assert {name: [item.key for item in items] for name, items in config.receivers.items()} == {
        "ops": ["ops/bus/0", "ops/mail/0", "ops/mail/1", "ops/file/0"],
        "page": ["page/webhook/0", "page/webhook/1", "page/alertmanager/0"],
    }
    settings = {key: item.settings for key, item in config.integrations.items()}
    assert isinstance(settings["ops/bus/0"], BusConfig)
    assert settings["ops/file/0"] == FileConfig(path=folder / "alerts.jsonl")
    mail, tls_mail = settings["ops/mail/0"], settings["ops/mail/1"]
    assert isinstance(mail, MailConfig)
    assert isinstance(tls_mail, MailConfig)
    assert mail.to == ("a@example.org", "b@example.org", "c@example.org")
    assert (mail.host, mail.port, mail.require_tls, mail.implicit_tls) == ("mail.example.org", 587, True, False)
    assert (mail.username, mail.password, mail.send_resolved) == ("me", Secret(folder / "password"), True)
    assert mail.headers == (("X-Kind", "{{ status }}"),)
    assert (tls_mail.host, tls_mail.port, tls_mail.implicit_tls, tls_mail.send_resolved) == ("::1", 465, True, False)
    one, two = settings["page/webhook/0"], settings["page/webhook/1"]
    assert isinstance(one, WebhookConfig)
    assert isinstance(two, WebhookConfig)
    assert (one.url, one.send_resolved, one.max_alerts, two.url) == ("http://one", False, 5, Secret(variable="HOOK"))
    manager = settings["page/alertmanager/0"]
    assert isinstance(manager, AlertmanagerConfig)
    assert (manager.url, manager.resend_interval, manager.http.username) == ("https://am:9093", 30 * S, "u")
    assert manager.http.password == Secret(variable="P")
    assert config.inhibit == (
        InhibitRule(
            source=parse_matchers(["alertname=dead"]),
            target=parse_matchers(["severity!=crit"]),
            equal=("agent",),
            outlast=5 * S,
        ),
    )
    assert config.uses_bus
    settings = {key: item.settings for key, item in config.integrations.items()}
    assert not settings["ops/bus/0"].repeats
    assert settings["page/alertmanager/0"].resend_interval == 30 * S
    assert not settings["page/webhook/0"].send_resolved


def test_routes_inherit(folder: Path) -> None:
    root = parse_config(WHOLE, folder=folder).route
    page, team = root.routes
    (deep,) = team.routes
    assert (root.group_wait, root.group_interval, root.repeat_interval) == (10 * S, 60 * S, 3 * 3600 * S)
    assert (page.receiver, page.continues, page.group_by) == ("page", True, ("alertname", "agent"))
    assert (team.receiver, team.group_wait, team.matchers) == ("ops", 0, parse_matchers(["team=db"]))
    assert (deep.receiver, deep.group_wait, deep.group_by) == ("page", 0, ("...",))
    assert len({route.key for route in (root, page, team, deep)}) == 4


def test_defaults_are_those_of_alertmanager() -> None:
    config = parse_config('[route]\nreceiver = "x"\n[[receiver]]\nname = "x"')
    route = config.route
    assert (route.group_wait, route.group_interval, route.repeat_interval) == (30 * S, 300 * S, 4 * 3600 * S)
    assert (route.group_by, config.receivers, config.inhibit) == ((), {"x": ()}, None)


ERRORS = [
    ("", ["there is no [route]"]),
    ("[route]\n", ["1: route: receiver is missing"]),
    ("a = \n[route]\nb = 'x\n", ["1: Invalid value", "3: Expected \"'\""]),
    (
        '[route]\nreceiver = "x"\ngroup_wat = 1\nmatchers = ["a=b"]\n',
        ["2: route: receiver: there is no receiver 'x'", "3: route: group_wat: no such key; there are receiver,",
         "4: route: matchers: the first route takes all alerts"],
    ),
    (
        '[route]\nreceiver = "x"\ngroup_wait = "soon"\nrepeat_interval = 0\ngroup_by = 5\n'
        '[[route.routes]]\nmatchers = ["a"]\ncontinue = "yes"\n[[receiver]]\nname = "x"\n',
        ["3: route: group_wait: must be a time such as", "4: route: repeat_interval: must be longer than 0",
         "5: route: group_by: must be a list of texts, not 5",
         "7: route: routes: 1: matchers: 'a' is not a matcher", "8: route: routes: 1: continue: must be true or false"],
    ),
    (
        '[route]\nreceiver = "x"\n[[receiver]]\nname = "x"\n[[receiver]]\nname = "x"\nsms = {}\n[[receiver]]\n',
        ["6: receiver: 2: name: there is another receiver 'x'", "7: receiver: 2: sms: no such key; there are name, bus",
         "8: receiver: 3: name is missing"],
    ),
    (
        '[route]\nreceiver = "x"\n[[receiver]]\nname = "x"\n[[receiver.webhook]]\nurl = "ftp://x"\nmax_alerts = -1\n'
        '[[receiver.webhook]]\n[[receiver.webhook]]\nurl = "http://u:p@x"\n[receiver.webhook.http_config]\n'
        'basic_auth = {password = "p"}\nproxy = "x"\n',
        ["6: receiver: 1: webhook: 1: url: must be http://", "7: receiver: 1: webhook: 1: max_alerts: must be a whole",
         "8: receiver: 1: webhook: 2: url is missing",
         "10: receiver: 1: webhook: 3: url: a password does not belong into this file",
         "12: receiver: 1: webhook: 3: http_config: basic_auth: password: a secret does not belong",
         "13: receiver: 1: webhook: 3: http_config: proxy: no such key"],
    ),
    (
        '[route]\nreceiver = "x"\n[[receiver]]\nname = "x"\n[receiver.mail]\nto = "nobody"\nsmarthost = "a b"\n'
        'auth_username = "me"\nauth_password = "x"\nsubject = "{{ x"\nheaders = {"a b" = "x", X = "{% if %}"}\n',
        ["5: receiver: 1: mail: auth_username and auth_password_file or auth_password_env belong together",
         "5: receiver: 1: mail: from is missing", "6: receiver: 1: mail: to: 'nobody' is not an address",
         "7: receiver: 1: mail: smarthost: must be HOST:PORT", "9: receiver: 1: mail: auth_password: a secret does not",
         "10: receiver: 1: mail: subject: template: ", "11: receiver: 1: mail: headers: X: template: ",
         "11: receiver: 1: mail: headers: a b: is not the name of a header"],
    ),
    (
        '[route]\nreceiver = "x"\n[[receiver]]\nname = "x"\nfile = {path = "gone/x"}\n'
        'alertmanager = {url = "http://x", http_config = {authorization = {credentials_file = "gone"}}}\n'
        '[[inhibit]]\nsource_matchers = []\nequal = "x"\n',
        ["5: receiver: 1: file: path: gone: no such folder",
         "6: receiver: 1: alertmanager: http_config: authorization: credentials_file: gone: no such file",
         "7: inhibit: 1: target_matchers is missing"],
    ),
    ("route = 1\nreceiver = 2\ninhibit = 'x'", [
        "1: route: must be a table, not 1", "1: route: receiver is missing",
        "2: receiver: must be a table or a list of tables", "3: inhibit: must be a table or a list of tables",
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ERRORS)
def test_every_error_has_its_line(text: str, expected: list[str]) -> None:
    found = [
        f"{error.line}: {error.text}" if error.line else error.text for error in config_errors(text, needs_route=True)
    ]
    assert len(found) == len(expected), "\n".join(found)
    for line, beginning in zip(found, expected, strict=True):
        assert line.startswith(beginning), found
    with pytest.raises(PipelineError) as caught:
        parse_config(text, "n.toml")
    assert all(line.startswith("n.toml:") for line in str(caught.value).split("\n"))


def test_a_file_of_rules_may_have_none_of_it() -> None:
    assert config_errors('[full]\nkind = "x"') == []
    assert not has_config('[full]\nkind = "x"')
    assert not has_config("wrong")
    assert has_config("[route]\n")
    assert [error.text for error in config_errors('[full]\n[[receiver]]\nname = "x"')] == ["there is no [route]"]


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match=r"gone\.toml: No such file or directory"):
        load_config(tmp_path / "gone.toml")


def test_raise_is_a_receiver_of_every_alert(folder: Path) -> None:
    alone = bus_config()
    assert [route.receiver for route in alone.route.find({"a": "b"})] == ["bus"]
    text = '[route]\nreceiver = "bus"\n[[receiver]]\nname = "bus"\nwebhook = {url = "http://x"}'
    both = with_bus(parse_config(text))
    first, second = both.route.find({"a": "b"})
    assert (first.receiver, first.group_wait, second.receiver) == ("bus-", 0, "bus")
    assert list(both.integrations) == ["bus/webhook/0", "bus-/bus/0"]
    whole = parse_config(WHOLE, folder=folder)
    assert with_bus(whole) == whole


RULES = """
[dead]
kind = "absence"
of = "heartbeats"
for = "30s"
[gone]
kind = "absence"
of = "samples"
class = "p:c"
for = "1m"
[full]
kind = "threshold"
class = "p:c"
value = "v"
above = 1
[often]
kind = "count"
event = "p:e"
at_least = 2
within = "1m"
"""


def test_a_dead_agent_inhibits_what_was_measured_of_it() -> None:
    (rule,) = default_inhibition(parse_rules(RULES))
    assert rule.equal == ("agent",)
    assert [str(matcher) for matcher in rule.source] == ['alertname=~"dead"', 'agent!=""']
    assert [str(matcher) for matcher in rule.target] == ['alertname=~"gone|full"']
    assert InhibitRule.from_json(rule.to_json()) == rule
    assert default_inhibition(parse_rules(RULES[: RULES.index("[gone]")])) == ()


# -- routes


def test_the_deepest_route_that_matches_takes_the_alert() -> None:
    deep = Route(key="d", receiver="deep", matchers=parse_matchers(["zone=x"]))
    first = Route(key="1", receiver="first", matchers=parse_matchers(["severity=crit"]), routes=(deep,))
    copy = Route(key="2", receiver="copy", matchers=parse_matchers(["team=db"]), continues=True)
    last = Route(key="3", receiver="last", matchers=parse_matchers(["team=~db|web"]))
    root = Route(receiver="root", routes=(first, copy, last))

    def found(**labels: str) -> list[str]:
        return [route.receiver for route in root.find(labels)]

    assert found() == ["root"]
    assert found(severity="crit") == ["first"]
    assert found(severity="crit", zone="x", team="db") == ["deep"]
    assert found(team="db") == ["copy", "last"]
    assert found(team="web") == ["last"]


def test_the_key_of_a_group() -> None:
    labels = {"alertname": "full", "agent": 'a"b', "object": "o"}
    assert Route(receiver="r").group_key(labels) == "{}:{}"
    by = Route(receiver="r", group_by=("object", "alertname", "zone"))
    assert by.group_key(labels) == '{}:{alertname="full", object="o"}'
    assert by.group_labels(labels) == {"object": "o", "alertname": "full"}
    assert Route(receiver="r", group_by=("...",)).group_labels(labels) == labels
