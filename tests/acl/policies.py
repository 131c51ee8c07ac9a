"""Invented files of access control, and questions to them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from qmf.acl.rules import Lookup
from qmf.acl.words import LIMITS, LOOKUPS, PLACEHOLDERS, RULE_PROPERTIES, RuleOutcome

USERS = ("ann@QPID", "bob@QPID", "b.c@d.e", "eve@QPID")
GROUPS = ("admin", "staff-1", "guests")
NAMES = ("q", "q1", "tmp.x", "ann", "ann_QPID", "b_c", "d_e", "b_c_d_e", "amq.default", "*", "x")
KEYS = ("news", "news.uk", "news.uk.x", "ann.news", "ann_QPID", "b_c_d_e.x", "QPID", "", "x.y")
PATTERNS = ("news", "news.*", "news.#", "#", "*.news", "#.x", "news.#.x", "*.#", "#.*.x")
FLAGS = frozenset({"durable", "exclusive", "autodelete", "paging"})
NUMBERS = ("0", "1", "5", "10", "4096")
HOSTS = ("127.0.0.1", "10.0.0.1,10.0.0.9", "10.0.0.5", "::1", "all")
ADDRESSES = ("127.0.0.1", "10.0.0.1", "10.0.0.5", "10.0.1.1", "::1")


def policy(chance: Random) -> str:
    """A file without errors."""
    lines = [*_groups(chance)]
    connections = 0
    for _ in range(chance.randrange(1, 14)):
        line = _rule(chance)
        connections += " create connection host=all" in line and " all create" in line
        if connections < 2:
            lines.append(line)
    if chance.random() < 0.7:
        lines.insert(chance.randrange(len(lines) + 1) if chance.random() < 0.2 else len(lines), _default(chance))
    return "\n".join(lines) + "\n"


def lookups(chance: Random, count: int) -> Iterator[Lookup]:
    """Questions, those for publishing a message among them."""
    for _ in range(count):
        action, object_type = chance.choice([*LOOKUPS])
        user = chance.choice((*USERS, "nobody@QPID"))
        if (action, object_type) == ("publish", "exchange") and chance.random() < 0.8:
            key = {"routingkey": chance.choice((*KEYS, "${user}", "x.${domain}"))}
            yield Lookup(user, action, object_type, chance.choice((*NAMES, "")), key, publishing=True)
            continue
        widest = chance.choice(LOOKUPS[action, object_type])
        properties = {name: _looked_up(chance, name) for name in sorted(widest) if chance.random() < 0.9}
        if (action, object_type) == ("create", "connection"):
            yield Lookup(user, action, object_type, "", {"host": chance.choice(ADDRESSES)})
        else:
            yield Lookup(user, action, object_type, chance.choice(NAMES), properties)


def _groups(chance: Random) -> Iterator[str]:
    for position, name in enumerate(GROUPS):
        members = chance.sample([*USERS[:3], *GROUPS[:position]], chance.randrange(1, 4))
        yield f"group {name} {chance.choice((' ', f' {chr(92)}{chr(10)}  ')).join(members)}"


def _default(chance: Random) -> str:
    return f"acl {chance.choice([*RuleOutcome]).value} all all"


def _rule(chance: Random) -> str:
    outcome = chance.choice([*RuleOutcome]).value
    subject = chance.choice((*USERS, *GROUPS, "all"))
    if chance.random() < 0.1:
        return f"acl {outcome} {subject} all" + ("" if subject == "all" else chance.choice(("", " queue", " all")))
    action, object_type = chance.choice([*LOOKUPS])
    if (action, object_type) == ("create", "connection"):
        return f"acl {outcome} {subject} create connection host={chance.choice(HOSTS)}"
    if chance.random() < 0.1:
        return f"acl {outcome} {subject} {action}" + chance.choice(("", " all"))
    wanted = [*chance.choice(LOOKUPS[action, object_type]), "name", "name"]
    properties = dict.fromkeys(chance.sample(wanted, min(len(wanted), chance.randrange(4))))
    if chance.random() < 0.03:
        properties["owner"] = None
    return f"acl {outcome} {subject} {action} {object_type}" + "".join(
        f" {name}={_wanted(chance, name)}" for name in _rule_names(chance, properties)
    )


def _rule_names(chance: Random, properties: dict[str, None]) -> Iterator[str]:
    for name in properties:
        bounds = [rule for rule, limit in LIMITS.items() if limit.property == name]
        yield chance.choice(bounds) if bounds else name


def _wanted(chance: Random, name: str) -> str:
    assert name in RULE_PROPERTIES
    if name in LIMITS:
        return chance.choice(NUMBERS)
    if name in FLAGS:
        return chance.choice(("true", "false"))
    if name == "policytype":
        return chance.choice(("ring", "reject"))
    if name == "routingkey":
        return chance.choice((*PATTERNS, *(f"{item}.#" for item in PLACEHOLDERS), *PLACEHOLDERS))
    return chance.choice((*NAMES, "q*", "tmp.*", *PLACEHOLDERS, *(f"{item}*" for item in PLACEHOLDERS), "x-${user}"))


def _looked_up(chance: Random, name: str) -> str:
    if name in {limit.property for limit in LIMITS.values()}:
        return chance.choice(NUMBERS)
    if name in FLAGS:
        return chance.choice(("true", "false"))
    if name == "policytype":
        return chance.choice(("ring", "reject"))
    return chance.choice(KEYS if name == "routingkey" else (*NAMES, "x-ann"))
