"""The rule that decides on a published message is found by its key: the same one as by looking at all rules in turn."""

from __future__ import annotations

from random import Random

from acl.policies import GROUPS, KEYS, PATTERNS, USERS, policy
from hypothesis import given
from hypothesis import strategies as st

from qmf.acl.publishing import MAX_KNOWN, MAX_OTHERS
from qmf.acl.reader import read
from qmf.acl.rules import Lookup
from qmf.acl.words import PLACEHOLDERS, RuleOutcome
from qmf.bus.topics import MAX_CACHED_KEY

_KEYS = st.sampled_from(
    [*KEYS, "${user}", "x.${domain}", "b_c.news", "QPID.x", "$SYS/news", "news/uk", "news/+", "#", "b_c/x"]
)
_MQTT_PATTERNS = ["news/+", "news/#", "+/uk", "#", "+/#", "news/#/x", "$SYS/#", "$SYS/news", "${user}/#", "${user}/x"]
_OWN_KEYS = [item + end for item in PLACEHOLDERS for end in ("", ".#", ".*")]
_RULES = st.lists(
    st.builds(
        "acl {} {} publish exchange{}{}".format,
        st.sampled_from(["allow", "deny", "allow-log", "deny-log"]),
        st.sampled_from([*USERS, "all"]),
        st.sampled_from(["", " name=x", " name=mqtt", " name=amq.default"]),
        st.sampled_from(["", *(f" routingkey={key}" for key in (*PATTERNS, *_MQTT_PATTERNS, *_OWN_KEYS))]),
    ),
    max_size=12,
)


@given(rules=_RULES, user=st.sampled_from(USERS), exchange=st.sampled_from(["x", "y", "mqtt", ""]), key=_KEYS)
def test_the_first_rule_that_matches(rules: list[str], user: str, exchange: str, key: str) -> None:
    found = read("\n".join(rules), "users.acl")
    lookup = Lookup(user, "publish", "exchange", exchange, {"routingkey": key}, publishing=True)
    first = next(
        (rule for rule in found.rules if rule.concerns_user(user) and rule.mismatch(lookup) is None), found.default
    )
    assert found.decide(lookup).rule is first
    by_key = found.publishing_rules(user, frozenset(), exchange)
    if key.startswith(by_key.beginnings) and "$" not in key:
        assert by_key.allows(key)
    assert by_key.known <= {key}
    if key in by_key.known:
        assert by_key.allows(key)
    assert by_key.allows(key) == (first is not None and first.outcome is RuleOutcome.ALLOW and "${" not in key)


def test_keys_that_are_known_are_few() -> None:
    lines = (
        "deny all publish exchange name=x routingkey=*.secret.#",
        "allow all publish exchange name=x routingkey=a.#",
    )
    rules = read("".join(f"acl {line}\n" for line in lines), "users.acl").publishing_rules("bob@QPID", frozenset(), "x")
    assert not rules.allows("a.secret.0")
    assert not rules.allows("b")
    assert rules.allows("a." + "x" * MAX_CACHED_KEY)
    assert rules.known == set()
    for number in range(MAX_KNOWN + MAX_OTHERS + 1):
        assert rules.allows(f"a.{number}")
        assert len(rules.known) == (0 if number == MAX_KNOWN + MAX_OTHERS else min(number + 1, MAX_KNOWN))
    assert rules.allows("a.0")
    assert rules.known == {"a.0"}


@given(seed=st.integers(0, 2**32), user=st.sampled_from(USERS), groups=st.sets(st.sampled_from(GROUPS)), key=_KEYS)
def test_among_rules_of_all_kinds(seed: int, user: str, groups: set[str], key: str) -> None:
    found = read(policy(Random(seed)), "users.acl")
    lookup = Lookup(user, "publish", "exchange", "q", {"routingkey": key}, publishing=True, groups=frozenset(groups))
    first = next(
        (
            rule
            for rule in found.rules
            if rule.concerns_user(user, lookup.groups)
            and rule.concerns("publish", "exchange")
            and rule.mismatch(lookup) is None
        ),
        found.default,
    )
    assert found.decide(lookup).rule is first
