"""What rules decide."""

from __future__ import annotations

import pytest

from qmf.acl.reader import read
from qmf.acl.rules import Lookup
from qmf.acl.ruleset import Decision
from qmf.acl.words import RuleOutcome


def decide(text: str, user: str, action: str, object_type: str, name: str = "", **properties: str) -> str:
    return read(text, "users.acl").decide(Lookup(user, action, object_type, name, properties)).outcome.value


def publishes(text: str, user: str, exchange: str, key: str) -> bool:
    lookup = Lookup(user, "publish", "exchange", exchange, {"routingkey": key}, publishing=True)
    return read(text, "users.acl").decide(lookup).allows


def test_nothing_is_allowed_without_a_rule() -> None:
    assert decide("", "bob@QPID", "create", "queue", "q") == "deny"


def test_the_first_rule_that_matches_decides() -> None:
    text = "acl allow bob@QPID create queue name=b*\nacl deny-log all create queue\nacl allow all all\n"
    assert decide(text, "bob@QPID", "create", "queue", "box") == "allow"
    assert decide(text, "bob@QPID", "create", "queue", "abox") == "deny-log"
    assert decide(text, "ann@QPID", "create", "queue", "box") == "deny-log"
    assert decide(text, "ann@QPID", "purge", "queue", "box") == "allow"


def test_the_last_rule_for_everything_is_the_default_and_rules_below_it_count() -> None:
    text = "acl deny all all\nacl allow bob@QPID purge queue\n"
    assert decide(text, "bob@QPID", "purge", "queue", "q") == "allow"
    # An earlier one is a rule as others.
    text = "acl deny all all\nacl allow bob@QPID purge queue\nacl allow all all\n"
    assert decide(text, "bob@QPID", "purge", "queue", "q") == "deny"


def test_members_of_groups_and_of_groups_within() -> None:
    text = "group inner a@QPID\ngroup outer inner b@QPID\nacl allow outer consume queue\n"
    assert [decide(text, f"{name}@QPID", "consume", "queue", "q") for name in "abc"] == ["allow", "allow", "deny"]


def of_token(text: str, user: str, *groups: str) -> Decision:
    lookup = Lookup(user, "consume", "queue", "q", {}, groups=frozenset(groups))
    return read(text, "users.acl").decide(lookup)


def test_groups_that_a_token_names() -> None:
    text = "group inner a@QPID\ngroup outer inner\nacl deny strange consume queue\nacl allow outer consume queue\n"
    assert not of_token(text, "z@QPID").allows
    # A group of the file, one within it, and one that no line names.
    assert [of_token(text, "z@QPID", group).allows for group in ("outer", "inner", "other")] == [True, True, False]
    # A group that the file names in rules alone.
    assert str(of_token(text, "a@QPID", "strange").rule) == "line 3: acl deny strange consume queue"


@pytest.mark.parametrize("group", ["a@QPID", "all"])
def test_a_token_cannot_name_users_or_all(group: str) -> None:
    text = "acl allow a@QPID consume queue\nacl deny all consume queue"
    assert not of_token(text, "z@QPID", group).allows


def test_quotas_and_hosts_of_groups_that_a_token_names() -> None:
    text = "group staff a@QPID\nquota queues 5 staff guests\nquota queues 7 trainees\nquota queues 1 all b@QPID\n"
    rules = read(text + "acl deny staff create connection host=all", "users.acl")
    limit = rules.quotas["queues"].limit
    assert [limit("z@QPID", groups) for groups in ((), ("staff",), ("guests", "trainees"), ("x",))] == [1, 5, 7, 1]
    assert (limit("a@QPID"), limit("b@QPID", ("staff",))) == (5, 1)
    lookup = Lookup("z@QPID", "create", "connection", "", {"host": "10.0.0.1"}, groups=frozenset({"staff"}))
    assert not rules.decide(lookup).allows
    assert "is not in" not in "".join(map(str, rules.rules_passed_over(lookup)))


def test_a_property_that_the_lookup_lacks_does_not_match() -> None:
    text = "acl deny all access exchange type=topic\nacl allow all all\n"
    assert decide(text, "a@QPID", "access", "exchange", "x") == "allow"
    assert decide(text, "a@QPID", "access", "exchange", "x", type="topic") == "deny"
    # Where only the name is asked for, other properties are not compared.
    lookup = Lookup("a@QPID", "access", "exchange", "x", None)
    assert read(text, "users.acl").decide(lookup).outcome is RuleOutcome.DENY


@pytest.mark.parametrize(
    ("size", "outcome"), [("9", "deny-log"), ("10", "allow-log"), ("20", "allow-log"), ("21", "deny-log")]
)
def test_a_limit_that_is_exceeded_denies(size: str, outcome: str) -> None:
    text = (
        "acl allow-log all create queue queuemaxsizelowerlimit=10 queuemaxsizeupperlimit=20\n"
        "acl allow all all\n"
    )  # fmt: skip
    assert decide(text, "a@QPID", "create", "queue", "q", maxqueuesize=size) == outcome


def test_limits_of_zero_are_kept_by_all_and_those_of_nothing_known_don_t_match() -> None:
    assert decide("acl allow all create queue maxqueuecount=0", "a@Q", "create", "queue", maxqueuecount="9") == "allow"
    assert decide("acl allow all create queue maxqueuecount=9", "a@Q", "create", "queue") == "deny"
    assert decide("acl allow all create queue maxqueuecount=9", "a@Q", "create", "queue", maxqueuecount="x") == "deny"


def test_the_decision_names_the_limit() -> None:
    rules = read("acl allow all create queue maxqueuecount=9", "users.acl")
    decision = rules.decide(Lookup("a@QPID", "create", "queue", "q", {"maxqueuecount": "10"}))
    assert str(decision) == "deny: line 1: acl allow all create queue maxqueuecount=9 (exceeds queuemaxcountupperlimit)"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("${user}", "bob_smith"),
        ("${domain}", "a_b"),
        ("${userdomain}", "bob_smith_a_b"),
        ("q-${user}-*", "q-bob_smith-1"),
    ],
)
def test_placeholders_stand_for_the_user(name: str, value: str) -> None:
    text = f"acl allow all bind exchange name={name}\nacl allow all bind exchange queuename={name}"
    assert decide(text, "bob.smith@a.b", "bind", "exchange", value, queuename="q", routingkey="") == "allow"
    assert decide(text, "bob.smith@a.b", "bind", "exchange", "x", queuename=value, routingkey="") == "allow"
    assert decide(text, "ann@a.b", "bind", "exchange", value, queuename=value.replace("a_b", "c"), routingkey="") == (
        "allow" if "domain" in name and "user" not in name else "deny"
    )


def test_routing_keys_match_as_in_a_topic_exchange() -> None:
    text = "acl allow all publish exchange name=x routingkey=stocks.*.#\n"
    assert [publishes(text, "a@Q", "x", key) for key in ("stocks.ibm", "stocks.ibm.usd", "stocks", "news.ibm")] == [
        *(True, True),
        *(False, False),
    ]
    assert not publishes(text, "a@Q", "y", "stocks.ibm")


def test_keys_with_the_user() -> None:
    text = "acl allow all publish exchange name=x routingkey=${user}.#\n"
    assert publishes(text, "bob@QPID", "x", "bob.news")
    assert not publishes(text, "ann@QPID", "x", "bob.news")
    assert not publishes(text, "bob@QPID", "x", "${user}.news")


def test_the_exchange_without_a_name() -> None:
    text = "acl allow all publish exchange name=amq.default routingkey=q\n"
    assert publishes(text, "a@Q", "", "q")
    assert not publishes(text, "a@Q", "", "r")
    assert not publishes(text, "a@Q", "amq.default", "q")


def test_messages_are_looked_up_only_if_there_are_rules_about_publishing() -> None:
    def rules(text: str) -> bool:
        return read(text, "users.acl").has_publish_rules

    assert not rules("acl allow bob@QPID create queue\nacl deny all all")
    assert not rules("acl allow all publish queue")  # never asked for
    assert rules("acl allow all publish exchange name=x")
    assert rules("acl allow bob@QPID all queue")


def test_rules_for_connections() -> None:
    text = (
        "acl deny all create connection host=10.0.0.1,10.0.0.9\n"
        "acl allow bob@QPID create connection host=10.0.0.5\n"
        "acl deny bob@QPID create connection host=all\n"
        "acl allow ann@QPID create connection host=[::1]\n"
        "acl deny all create connection host=all\n"
    )
    rules = read(text, "users.acl")

    def connects(user: str, host: str) -> bool:
        return rules.decide_connection(user, host).allows

    assert not connects("bob@QPID", "10.0.0.5")  # rules for all come first
    assert not connects("bob@QPID", "10.0.0.10")
    assert connects("ann@QPID", "::1")
    assert not connects("ann@QPID", "10.0.0.10")
    assert connects("ann@QPID", "/run/socket")
    assert connects("ann@QPID", "")
    assert read("", "users.acl").decide_connection("ann@QPID", "10.0.0.1").allows


def test_names_of_hosts_are_resolved_when_the_file_is_read() -> None:
    rules = read("acl deny all create connection host=near", "users.acl", resolver=lambda _: "10.0.0.5")
    assert not rules.decide_connection("a@Q", "10.0.0.5").allows
    assert not rules.decide_connection("a@Q", "::ffff:10.0.0.5").allows
    assert rules.decide_connection("a@Q", "10.0.0.6").allows


def test_rules_that_were_passed_over_have_reasons() -> None:
    text = (
        "acl allow ann@QPID create queue\n"
        "acl allow all create queue name=tmp.*\n"
        "acl allow all create queue durable=false\n"
        "acl allow all create queue maxpages=5\n".replace("maxpages", "pagesupperlimit")
        + "acl deny all create queue\n"
    )
    rules = read(text, "users.acl")
    lookup = Lookup("bob@QPID", "create", "queue", "box", {"durable": "true"})
    assert [str(passed) for passed in rules.rules_passed_over(lookup)] == [
        "line 2: acl allow all create queue name=tmp.*: name: 'box' is not 'tmp.*'",
        "line 3: acl allow all create queue durable=false: durable: 'true' is not 'false'",
        "line 4: acl allow all create queue pagesupperlimit=5: pagesupperlimit: unknown for this operation",
    ]
    assert str(rules.decide(lookup)) == "deny: line 5: acl deny all create queue"
