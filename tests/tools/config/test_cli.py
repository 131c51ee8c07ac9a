"""`qpid-config` as a user runs it, on the embedded broker, and on a qpidd where there is one."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pytest
from support.brokers import URLS
from support.managed_brokers import unique

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent
from qmf.tools.config.cli import main

#: Runs the tool with words; its exit code, output and errors.
Run: TypeAlias = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(url: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*words: str) -> tuple[int, str, str]:
        code = main([*words, "-a", url, "--timeout", "30"])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def ok(run: Run) -> Callable[..., str]:
    def call(*words: str) -> str:
        code, out, err = run(*words)
        assert (code, err) == (0, "")
        return out

    return call


Ok: TypeAlias = Callable[..., str]


@pytest.fixture
def queue(ok: Ok, url: str) -> Iterator[str]:
    name = unique("orders")
    ok("add", "queue", name)
    yield name
    with BrokerAgent.connect(url, timeout=30) as broker:
        if broker.getQueue(name) is not None:
            broker.delQueue(name, if_empty=False, if_unused=False)


def test_the_summary(ok: Ok) -> None:
    lines = ok().splitlines()
    assert re.fullmatch(r"Total Exchanges: \d+", lines[0])
    assert {"         direct", "         fanout", "          topic", "        headers"} <= {
        line.partition(":")[0] for line in lines
    }
    assert lines[-4] == ""
    assert re.fullmatch(r"   Total Queues: \d+", lines[-3])
    assert re.fullmatch(r"        durable: \d+", lines[-2])
    assert re.fullmatch(r"    non-durable: \d+", lines[-1])
    counts = json.loads(ok("--json"))
    assert counts["exchanges"]["fanout"] >= 1
    assert set(counts["queues"]) == {"durable", "non-durable"}


def test_queues_with_the_attributes_that_made_them(ok: Ok) -> None:
    name = unique("limited")
    ok("add", "queue", name, "--max-queue-count", "1000", "--max-queue-size", "50000", "--limit-policy", "ring")
    heading, line, row = ok("queues", name).splitlines()
    width = len(name)
    assert heading == f"{'Queue Name':<{width}}  Attributes"
    assert line == "=====" * (width // 5 + 5)
    assert row.startswith(f"{name}  --")
    assert {"--max-queue-size=50000", "--max-queue-count=1000", "--limit-policy=ring"} <= set(row.split())
    (found,) = json.loads(ok("queues", name, "--json"))
    assert found["name"] == name
    assert found["arguments"]["qpid.max_count"] == 1000
    assert "bindings" not in found
    ok("del", "queue", name)


def test_nothing_found(run: Run) -> None:
    assert run("queues", "no such queue") == (1, "", "")
    assert run("exchanges", "no such exchange") == (1, "", "")
    assert run("queues", "no such queue", "--json") == (1, "[]\n", "")


def test_exchanges(ok: Ok) -> None:
    name = unique("prices")
    ok("add", "exchange", "topic", name)
    heading, line, row = ok("exchanges", name).splitlines()
    assert heading == f"Type      {'Exchange Name':<{len(name)}}  Attributes"
    assert line == "=====" * ((len(name) + 10) // 5 + 5)
    assert row == f"topic     {name}"
    assert "direct    \n" not in ok("exchanges", "--ignore-default")
    ok("del", "exchange", name)
    assert name not in ok("exchanges")


def test_bindings_of_every_type_of_exchange(ok: Ok, queue: str) -> None:
    topic, headers = unique("topic"), unique("headers")
    ok("add", "exchange", "topic", topic)
    ok("add", "exchange", "headers", headers)
    ok("bind", topic, queue, "eur.#")
    ok("bind", headers, queue, "big", "all", "colour=red,", "size=large")
    shown = ok("queues", "-r", queue).splitlines()
    assert shown[0] == f"Queue '{queue}'"
    assert f"    bind [{queue}] => ''" in shown
    assert f"    bind [eur.#] => {topic}" in shown
    (matching,) = [line for line in shown if headers in line]
    assert matching.startswith(f"    bind [big] => {headers} {{")
    for part in ("'colour': 'red'", "'size': 'large'", "'x-match': 'all'"):
        assert part in matching
    assert "''" not in ok("queues", "-r", queue, "--ignore-default").replace(f"'{queue}'", "")
    # The manual's -b and release 1.40's -r.
    for words in (("-b", "exchanges", topic), ("exchanges", topic, "-b"), ("exchanges", topic, "-r")):
        assert ok(*words).splitlines() == [f"Exchange '{topic}' (topic)", f"    bind [eur.#] => {queue}"]
    (found,) = json.loads(ok("exchanges", "--json", "-r", topic))
    assert found["bindings"] == [{"queue": queue, "key": "eur.#", "arguments": {}}]
    ok("unbind", topic, queue, "eur.#")
    assert ok("exchanges", topic, "-r").splitlines() == [f"Exchange '{topic}' (topic)"]
    ok("del", "exchange", topic)
    ok("del", "exchange", headers)


def test_objects_of_any_class(run: Run, queue: str) -> None:
    code, out, err = run("list", "queue", "--show-property", "name", "--show-property", "nothing")
    assert code == 0
    title, heading, line, *rows = out.splitlines()
    assert (title, heading.strip()) == ("Objects of type 'queue'", "name")
    assert set(line.strip()) == {"="}
    assert f"  {queue}" in rows
    assert err == "Warning: No such property 'nothing' for type 'queue'\n"
    assert run("list", "nosuchclass") == (1, "", "Failed: no class 'nosuchclass'\n")
    shown = json.loads(run("list", "queue", "--json", "--show-property", "name")[1])
    assert {"name": queue} in shown


def test_exchanges_of_a_list_show_their_defaults(ok: Ok) -> None:
    _title, heading, _line, *rows = ok("list", "exchange").splitlines()
    assert heading.split() == ["name", "type", "durable"]
    assert any(row.split()[:2] == ["amq.topic", "topic"] for row in rows)


def test_any_type_is_created_and_deleted(ok: Ok, queue: str) -> None:
    ok("add", "binding", f"amq.topic/{queue}/eur.usd")
    assert f"    bind [eur.usd] => {queue}" in ok("exchanges", "-r", "amq.topic").splitlines()
    ok("del", "binding", f"amq.topic/{queue}/eur.usd")
    assert queue not in ok("exchanges", "-r", "amq.topic")


def test_a_queue_with_messages_needs_force(url: str, run: Run, ok: Ok, queue: str) -> None:
    from qmf.messaging import Connection

    with Connection.establish(url, timeout=30) as connection:
        connection.session().sender(queue).send("one")
    code, out, err = run("del", "queue", queue)
    assert (code, out) == (1, "")
    assert err.startswith("Failed: precondition-failed: Cannot delete queue")
    ok("del", "queue", queue, "--force-if-not-empty")


def test_refusals_are_one_line(run: Run, queue: str) -> None:
    code, out, err = run("add", "queue", queue)
    assert (code, out, err) == (1, "", f"Failed: object already exists: {queue} (code 7)\n")
    code, _, err = run("del", "queue", "no such queue")
    assert code == 1
    assert re.fullmatch(r"Failed: not-found: Delete failed\. No such queue: no such queue.* \(code 7\)\n", err)
    code, _, err = run("bind", "amq.match", queue, "key")
    assert (code, err.count("\n")) == (1, 1)
    assert "needs 'any' or 'all'" in err


def test_a_dry_run_changes_nothing(run: Run, ok: Ok, queue: str) -> None:
    name = unique("planned")
    assert ok("--dry-run", "add", "queue", name, "--max-queue-count", "5") == (
        f"would create queue '{name}': qpid.max_count=5\n"
    )
    assert ok("--dry-run", "del", "queue", queue, "--force") == (
        f"would delete queue '{queue}': if_empty=False, if_unused=False\n"
    )
    assert ok("--dry-run", "bind", "amq.topic", queue, "a.b") == (
        f"would bind exchange 'amq.topic' and queue '{queue}' with key 'a.b'\n"
    )
    assert ok("--dry-run", "shutdown") == "would shut the broker down\n"
    assert queue in ok("queues", queue)
    assert run("queues", name)[0] == 1
    assert run("--dry-run", "add", "queue", queue) == (1, "", f"Failed: queue '{queue}' exists already\n")
    assert run("--dry-run", "del", "queue", name) == (1, "", f"Failed: there is no queue '{name}'\n")
    assert run("--dry-run", "bind", name, queue) == (1, "", f"Failed: there is no exchange '{name}'\n")


def test_options_without_effect_are_told(run: Run) -> None:
    name = unique("old")
    code, _, err = run("add", "queue", name, "--cluster-durable", "--file-count", "8", "--dry-run")
    assert code == 0
    assert err.splitlines() == [
        "Warning: --cluster-durable has no effect: brokers have no clusters any more",
        "Warning: qpid.file_count: no effect without --durable",
    ]


def test_an_xml_binding_needs_its_query(run: Run, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whether or not the broker has XML exchanges: what is sent is what the dry run shows."""
    from qmf.client import Exchange

    exchange = Exchange(None, {"_values": {"name": "x", "type": "xml"}})  # type: ignore[arg-type]
    monkeypatch.setattr(BrokerAgent, "getExchange", lambda *_: exchange)
    words = ("--dry-run", "bind", "x", "q", "key")
    code, _, err = run(*words)
    assert (code, err) == (1, "Failed: a binding to an XML exchange needs its query: -f FILE, or -f - for stdin\n")
    query = tmp_path / "query.xq"
    query.write_text("./price > 5", encoding="utf-8")
    shown = "would bind exchange 'x' and queue 'q' with key 'key': xquery='./price > 5'\n"
    assert run(*words, "-f", str(query))[1] == shown
    monkeypatch.setattr("sys.stdin", io.StringIO("./price > 5"))
    assert run(*words, "-f", "-")[1] == shown
    code, _, err = run(*words, "-f", str(tmp_path / "none"))
    assert code == 1
    assert "No such file" in err


def test_no_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["queues", "-b", "guest/guest@127.0.0.1:1", "--timeout", "30"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Failed: cannot connect to amqp://guest@127.0.0.1:1")
    assert err.count("\n") == 1


def test_the_manuals_address(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedBroker(management=3600.0, users={"guest": "guest"}) as broker:
        assert main(["exchanges", "amq.topic", "-a", f"guest/guest@127.0.0.1:{broker.port}"]) == 0
        assert "amq.topic" in capsys.readouterr().out
        assert main(["exchanges", "-b", f"guest/wrong@127.0.0.1:{broker.port}"]) == 1
        assert "guest" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["frobnicate"], "unknown command 'frobnicate'"),
        (["add", "queue", "q", "--limit-policy", "explode"], "invalid choice: 'explode'"),
        (["add", "queue", "q", "--max-queue-count", "many"], "'many' is not a whole number"),
        (["queues", "--ssl-key", "key.pem"], "missing --ssl-certificate (required by --ssl-key)"),
        (["queues", "--timeout", "soon"], "'soon' is not a number of seconds"),
        (["queues", "--no-such-option"], "unrecognized arguments"),
    ],
)
def test_wrong_options(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words)
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["add"], "add needs a type"),
        (["add", "queue"], "add queue needs a name"),
        (["add", "exchange", "topic"], "add exchange needs a type and a name"),
        (["del", "queue"], "del queue needs a name"),
        (["bind", "amq.topic"], "bind needs an exchange and a queue"),
        (["unbind", "amq.topic"], "unbind needs an exchange and a queue"),
        (["bind", "amq.topic", "q", "key", "all"], "only bindings to headers exchanges have conditions"),
        (["list"], "list needs a type"),
    ],
)
def test_wrong_commands(words: list[str], reason: str, run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        run(*words)
    assert caught.value.code == 2
    assert reason in capsys.readouterr().err


def test_domains_and_links_to_them(ok: Ok, run: Run, queue: str, url: str) -> None:
    domain = unique("domain")
    ok("add", "domain", domain, "--argument", "url=127.0.0.1:1", "--argument", "username=ann")
    try:
        assert re.search(rf"{domain} +\S*127\.0\.0\.1:1 .* ann ", ok("list", "domain"))
        ends = ("--argument", f"source={queue}", "--argument", "target=there")
        code, _, err = run("add", "outgoing", unique("x"), "--argument", "domain=none", *ends)
        assert (code, "No such domain: none" in err) == (1, True)
        if url in URLS.values():
            return  # qpidd has no link before it is connected
        link = unique("link")
        code, _, err = run("add", "outgoing", link, "--argument", f"domain={domain}", *ends, "--argument", "max_hops=0")
        assert (code, "max_hops: must be 1 or more, not 0" in err) == (1, True)
        ok("add", "outgoing", link, "--argument", f"domain={domain}", *ends, "--argument", "max_hops=4")
        assert re.search(rf"{link} +127\.0\.0\.1 +1 +False +(Connecting|Waiting)", ok("list", "link"))
        code, _, err = run("del", "domain", domain)
        assert (code, f"domain {domain} is in use by the outgoing link {link}" in err) == (1, True)
        ok("del", "outgoing", link)
    finally:
        ok("del", "domain", domain)


def test_a_durable_domain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedBroker(data_dir=tmp_path, management=3600.0) as broker:
        assert main(["add", "domain", "peer", "--durable", "--argument", "url=127.0.0.1:1", "-b", broker.url]) == 0
        assert main(["list", "domain", "--show-property", "durable", "-b", broker.url]) == 0
    out, err = capsys.readouterr()
    assert (out.split()[-1], err) == ("True", "")
