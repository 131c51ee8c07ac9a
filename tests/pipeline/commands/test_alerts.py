"""`qmf-pipeline silences` and `alerts`, as a user types them."""

from __future__ import annotations

import json
import time
from pathlib import Path

import attrs
import pytest
from pipeline.lakes import Shop

from qmf.pipeline.cli import main
from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.notifying.matchers import parse_matchers
from qmf.pipeline.notifying.muting import InhibitRule
from qmf.pipeline.notifying.state import (
    INHIBIT_TEXT,
    PENDING_TEXT,
    IntegrationCounts,
    NotificationState,
    SentState,
    StateFile,
)

S = 10**9
HOUR = 3600 * S


class Shell:
    """Runs commands in a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys

    def run(self, *arguments: str) -> list[str]:
        command, *rest = arguments
        position = 1 if command == "silences" else 0
        line = [command, *rest[:position], "--state", str(self.folder), *rest[position:]]
        assert main(line) == 0
        return self._capsys.readouterr().out.splitlines()

    def fails(self, *arguments: str) -> str:
        code: object = None
        try:
            code = main(arguments)
        except SystemExit as leaving:
            code = leaving.code
        assert code == 2
        return self._capsys.readouterr().err


@pytest.fixture
def shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(tmp_path / "state", capsys)


def test_a_silence_from_its_beginning_to_its_end(shell: Shell) -> None:
    assert shell.run("silences", "list") == ["no silences"]
    (id,) = shell.run(
        "silences", "add", "disk-full", 'agent=~"a|b"', "--comment", "new disk", "--author", "me", "--duration", "2h"
    )
    head, line = shell.run("silences", "list")
    assert head.split() == ["ID", "STATE", "FROM", "UNTIL", "AUTHOR", "MATCHERS", "COMMENT"]
    assert line.startswith(f"{id}  active  20")
    assert line.endswith('  me      alertname="disk-full", agent=~"a|b"  new disk')
    (content,) = json.loads("\n".join(shell.run("silences", "list", "--json", "disk-full")))
    assert (content["createdBy"], content["status"], len(content["matchers"])) == ("me", {"state": "active"}, 2)
    assert shell.run("silences", "list", "other") == ["no silences"]
    (told,) = shell.run("silences", "expire", id[:8])
    assert told.startswith(f"{id}: ended after ")
    assert shell.run("silences", "list") == ["no silences"]
    assert shell.run("silences", "list", "--expired")[1].split()[:2] == [id, "expired"]


def test_a_silence_with_given_times(shell: Shell) -> None:
    shell.run("silences", "add", "a=b", "-c", "x", "--start", "2100-01-01", "--end", "2100-01-02T00:00:00Z")
    (content,) = json.loads("\n".join(shell.run("silences", "list", "--json")))
    assert (content["startsAt"], content["endsAt"]) == ("2100-01-01T00:00:00Z", "2100-01-02T00:00:00Z")
    assert content["status"] == {"state": "pending"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("add", "a=b", "-c", "x"), "give --lake, or --state"),
        (("add", "--lake", "gone", "a=b", "-c", "x"), "gone: no such folder"),
        (("add", "--state", "s", "a=b"), "--comment"),
        (("add", "--state", "s", "-c", "x"), "MATCHER"),
        (("add", "--state", "s", 'a="b', "-c", "x"), "the quotes are not closed"),
        (("add", "--state", "s", "a=~.*", "-c", "x"), "that not every alert fulfils"),
        (("add", "--state", "s", "a=b", "-c", "x", "-d", "soon"), "--duration: must be a time such as 30s"),
        (("add", "--state", "s", "a=b", "-c", "x", "--end", "soon"), "--end: must be a time such as 2030"),
        (("add", "--state", "s", "a=b", "-c", "x", "--end", "2001-01-01"), "in the past"),
        (("add", "--state", "s", "a=b", "-c", "x", "--end", "2100-01-01", "-d", "1h"), "give either"),
        (("expire", "--state", "s", "x"), "x: no such silence"),
        ((), "ACTION"),
    ],
)
def test_wrong_usage(shell: Shell, arguments: tuple[str, ...], reason: str) -> None:
    error = shell.fails("silences", *arguments)
    assert reason in error
    assert "Traceback" not in error


def test_the_lake_may_be_in_a_file_of_options(tmp_path: Path, shell: Shell, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "options.toml").write_text(f'[all]\nlake = "{tmp_path}"\n[silences]\nauthor = "us"\n')
    config = ("--config", str(tmp_path / "options.toml"))
    assert main(["silences", "add", *config, "a=b", "-c", "x"]) == 0
    path = tmp_path / "_tables" / "correlate" / "_notify" / "silences.jsonl"
    assert json.loads(path.read_text())["createdBy"] == "us"
    capsys.readouterr()
    assert main(["silences", "list", *config]) == 0
    assert "us" in capsys.readouterr().out


def fill(folder: Path) -> None:
    now = time.time_ns()
    state = NotificationState()
    dead = alert("dead", now - HOUR, severity="crit", agent="a")
    others = [alert("full", now - 2 * HOUR, agent=name) for name in ("a", "b", "c")]
    ended = attrs.evolve(alert("busy", now - HOUR, agent="b"), ends_ns=now)
    for one in (dead, *others, ended):
        state.alerts.put(one.id, one)
    state.tell(dead.id, "ops/webhook/0", SentState.FIRING)
    state.tell(ended.id, "ops/webhook/0", SentState.OWED)
    state.counts.put("ops/webhook/0", IntegrationCounts(3, 1, 5, "no route", 10**18))
    inhibit = InhibitRule(
        source=parse_matchers(["alertname=dead"]), target=parse_matchers(["alertname!=dead"]), equal=("agent",)
    )
    pending = attrs.evolve(alert("slow", now - 5 * S, agent="c"), pending=True)
    file = StateFile(folder)
    texts = {
        INHIBIT_TEXT: json.dumps([inhibit.to_json()]),
        PENDING_TEXT: json.dumps([attrs.asdict(pending)]),
    }
    file.save(state, **texts)
    file.close()


def alert(name: str, at: int, **labels: str) -> Alert:
    given = {"alertname": name, "severity": "warn", **labels}
    id = " ".join(given.values())
    return Alert(id=id, incident=id, labels=given, annotations={"summary": f"it is {name}"}, starts_ns=at)


def test_active_alerts_and_what_mutes_them(shell: Shell) -> None:
    fill(shell.folder)
    (id,) = shell.run("silences", "add", "full", "agent=b", "-c", "known", "-a", "me", "-d", "1h")
    lines = shell.run("alerts")
    assert lines[0].split() == ["STATE", "ALERT", "SEVERITY", "SINCE", "SUMMARY"]
    shown = [line.split()[:3] for line in lines[1:] if not line.startswith(" ")]
    assert shown == [
        ["inhibited", "full", "warn"],
        ["silenced", "full", "warn"],
        ["firing", "full", "warn"],
        ["resolved", "busy", "warn"],
        ["firing", "dead", "crit"],
        ["pending", "slow", "warn"],
    ]
    details = [line.strip() for line in lines if line.startswith(" ")]
    assert "inhibited by dead: it is dead" in details
    assert "still to be told: ops/webhook/0" in details
    (silenced,) = [line for line in details if line.startswith("silenced by me for another ")]
    assert silenced.endswith(f": known ({id[:8]})")
    assert [line.split()[0] for line in shell.run("alerts", "full", "agent!=c")[1:] if not line.startswith(" ")] == [
        "inhibited",
        "silenced",
    ]
    assert shell.run("alerts", "--only", "pending", "agent=b") == ["no alerts"]
    content = json.loads("\n".join(shell.run("alerts", "--json", "--only", "silenced")))
    assert [item["status"] for item in content] == [{"state": "silenced", "silencedBy": [id], "inhibitedBy": []}]
    assert [item["told"] for item in json.loads("\n".join(shell.run("alerts", "--json", "dead")))] == [
        ["ops/webhook/0"]
    ]


def test_what_was_delivered(shell: Shell) -> None:
    fill(shell.folder)
    head, line = shell.run("alerts", "--receivers")
    assert head.split() == ["RECEIVER", "DELIVERED", "FAILED", "ALERTS", "LAST", "ATTEMPT", "ERROR"]
    assert line.split(maxsplit=5) == ["ops/webhook/0", "3", "1", "5", "2001-09-09T01:46:40Z", "no route"]
    content = json.loads("\n".join(shell.run("alerts", "--receivers", "--json")))
    assert content["ops/webhook/0"]["lastError"] == "no route"


def test_a_configuration_is_checked(shell: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "notify.toml"
    path.write_text('[route]\nreceiver = "x"\n[[receiver]]\nname = "x"\nbus = true\n')
    assert main(["alerts", "--check", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: no error; receivers: x/bus/0\n"
    path.write_text('[route]\nreceiver = "x"\ngroup_wait = "y"\n')
    error = shell.fails("alerts", "--check", str(path))
    assert f"{path}:2: route: receiver: there is no receiver 'x'" in error
    assert f"{path}:3: route: group_wait: must be a time" in error


def test_no_job_has_notified_here(shell: Shell) -> None:
    assert "notifications.db: no such file" in shell.fails("alerts", "--state", str(shell.folder))
    StateFile(shell.folder).close()
    assert shell.run("alerts") == ["no alerts"]
    assert shell.run("alerts", "--receivers") == ["nothing was sent yet"]


LAKE_RULES = """
[bad]
kind = "threshold"
class = "till"
value = "queue"
above = 1
where = "queue = 'many'"

[good]
kind = "threshold"
class = "till"
value = "queue"
above = 1

[unknown]
kind = "treshold"
"""


def test_alerts_are_shown_without_notifications_and_rules_that_fail_as_well(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = Shop(tmp_path / "lake")
    rules = tmp_path / "rules.toml"
    rules.write_text(LAKE_RULES)
    run = ["--lake", shop.root, "--rules", str(rules)]
    assert main(["alerts", "--lake", shop.root]) == 2
    assert "no table of alerts" in capsys.readouterr().err
    assert main(["correlate", *run, "--stream", "--once"]) == 0
    capsys.readouterr()
    assert main(["alerts", "--lake", shop.root]) == 0
    assert capsys.readouterr().out == "no alerts\n"
    shop.put((0, 1), (10, 2), queue=2, name="one")
    shop.put((5, 1), (7, 2), queue=2, name="two", object="two")
    shop.put((11, 1), queue=0, name="two", object="two")
    # A new stream follows from where the one before ended.
    assert main(["correlate", *run, "--stream", "--once"]) == 0
    capsys.readouterr()
    assert main(["alerts", "--lake", shop.root]) == 0
    output = capsys.readouterr()
    assert [line.split()[:2] for line in output.out.splitlines() if not line.startswith(" ")] == [
        ["STATE", "ALERT"],
        ["firing", "good"],
    ]
    assert [line.split(": ")[2:4] for line in output.err.splitlines()] == [["unknown", "kind"], ["bad", "where"]]
    assert main(["alerts", "--lake", shop.root, "two"]) == 0
    assert capsys.readouterr().out == "no alerts\n"
    assert main(["correlate", *run]) == 2
    assert capsys.readouterr().err.splitlines()[1].split(": ") == [
        "qmf-pipeline", "rules failed; the others were evaluated",
    ]  # fmt: skip
