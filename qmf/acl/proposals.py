"""Rules that allow what clients were recorded doing, and nothing else: a proposal for people to read and change.

Names become general where a recording shows how: what begins with the name of its user is written with a placeholder,
what a client invents (numbers, digits of an id) becomes a prefix, many keys to one exchange become their common
beginning. Users with the same rules become a group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from qmf.acl.reader import read
from qmf.acl.rules import Lookup
from qmf.acl.words import DEFAULT_EXCHANGE, LOOKUPS, USER, USER_DOMAIN

#: Different keys to one exchange from which on their common beginning is allowed.
MANY_KEYS = 8
#: What begins a part of a name that was invented: an id in hexadecimal digits, or a long number.
_INVENTED = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-f]{8}-[0-9a-f]{4}|(?=[0-9a-f]*\d)[0-9a-f]{8,}|\d{4,})")
#: Properties by which rules are proposed; others, such as limits, are left to people.
_KEPT = ("schemaclass", "queuename", "exchangename")

_Rule = tuple[str, str, str]


def propose(lookups: Iterable[Lookup]) -> str:
    """A file of rules.

    Args:
        lookups: what clients did.

    Returns:
        the text; it allows each of the lookups.
    """
    found = [lookup for lookup in lookups if _is_asked(lookup)]
    rules: dict[str, dict[_Rule, None]] = {}
    for lookup in found:
        rules.setdefault(lookup.user, {})
    keys = _keys(found)
    for lookup in found:
        for rule in _rules_for(lookup, keys):
            rules[lookup.user][rule] = None
    text = "\n".join([*_lines(rules), "acl deny-log all all", ""])
    missing = [lookup for lookup in found if not read(text, "").decide(lookup).allows]
    if not missing:
        return text
    exact = {
        f"acl allow {lookup.user} {lookup.action} {lookup.object_type}{_exact(lookup)}": None for lookup in missing
    }
    return "\n".join([*_lines(rules), *exact, "acl deny-log all all", ""])


def _is_asked(lookup: Lookup) -> bool:
    """Whether a rule is needed: connections are allowed without one."""
    return (lookup.action, lookup.object_type) in LOOKUPS and lookup.object_type != "connection"


def _keys(lookups: Iterable[Lookup]) -> Mapping[tuple[str, str, str], Sequence[str]]:
    """Routing keys by user, action and exchange."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    for lookup in lookups:
        if (key := (lookup.properties or {}).get("routingkey")) is not None:
            place = (lookup.user, lookup.action, lookup.name)
            found.setdefault(place, {})[_general(key, lookup.user, "#")] = None
    return {place: _join(list(keys)) for place, keys in found.items()}


def _join(keys: Sequence[str]) -> Sequence[str]:
    """Keys as they are, or what they have in common where there are many."""
    if len(keys) < MANY_KEYS:
        return keys
    by_first: dict[str, list[str]] = {}
    for key in keys:
        by_first.setdefault(key.partition(".")[0], []).append(key)
    if len(by_first) >= MANY_KEYS:
        return ["#"]
    return [of[0] if len(of) == 1 else f"{first}.#" for first, of in by_first.items()]


def _rules_for(lookup: Lookup, keys: Mapping[tuple[str, str, str], Sequence[str]]) -> Iterator[_Rule]:
    name = DEFAULT_EXCHANGE if lookup.publishing and not lookup.name else _general(lookup.name, lookup.user, "*")
    properties = lookup.properties or {}
    words = [f"name={name}"] if name else []
    words += [f"{item}={_general(properties[item], lookup.user, '*')}" for item in _KEPT if properties.get(item)]
    if "routingkey" not in properties:
        yield lookup.action, lookup.object_type, " ".join(words)
        return
    for key in keys[lookup.user, lookup.action, lookup.name]:
        # A key that is empty cannot be written: the exchange as a whole is allowed.
        yield lookup.action, lookup.object_type, " ".join([*words, *([f"routingkey={key}"] if key else [])])


def _general(text: str, user: str, rest: str) -> str:
    """A name or key with placeholders for its user, and without what was invented."""
    if (invented := _INVENTED.search(text)) is not None and invented.start():
        beginning = text[: invented.start()]
        # In a key, whole words are replaced.
        text = f"{beginning.rpartition('.')[0]}.{rest}".removeprefix(".") if rest == "#" else f"{beginning}{rest}"
    if text.startswith(("amq.", "qmf.")):  # names that belong to nobody
        return text
    name, _, domain = user.partition("@")
    both = f"{name}_{domain}".replace(".", "_").replace("@", "_")
    for own, placeholder in ((both, USER_DOMAIN), (name.replace(".", "_"), USER)):
        if text == own or (own and text.startswith(own) and not text[len(own)].isalnum()):
            return placeholder + text[len(own) :]
    return text


def _exact(lookup: Lookup) -> str:
    name = DEFAULT_EXCHANGE if lookup.publishing and not lookup.name else lookup.name
    return f" name={name}" if name else ""


def _lines(rules: Mapping[str, Mapping[_Rule, None]]) -> Iterator[str]:
    by_rules: dict[tuple[_Rule, ...], list[str]] = {}
    for user, own in rules.items():
        by_rules.setdefault(tuple(sorted(own)), []).append(user)
    groups: dict[tuple[_Rule, ...], str] = {}
    for wanted, users in by_rules.items():
        if len(users) > 1:
            groups[wanted] = f"clients-{len(groups) + 1}"
            yield f"group {groups[wanted]} {' '.join(users)}" if len(users) < 20 else _long_group(groups[wanted], users)
    for wanted, users in by_rules.items():
        for action, object_type, words in wanted:
            yield f"acl allow {groups.get(wanted, users[0])} {action} {object_type} {words}".rstrip()


def _long_group(name: str, users: Sequence[str]) -> str:
    lines = [" ".join(users[start : start + 20]) for start in range(0, len(users), 20)]
    return f"group {name} " + " \\\n  ".join(lines)
