"""Reads a file of access control: all its errors at once, with their lines, in the words of qpidd."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import attrs

from qmf.acl.hosts import HostRange, Resolver, resolve
from qmf.acl.rules import AclRule
from qmf.acl.ruleset import HostRule, Quotas, RuleSet
from qmf.acl.words import (
    ACTIONS,
    ALIASES,
    ALL,
    BROKER,
    LIMITS,
    MAX_LIMIT,
    OBJECT_TYPES,
    POLICY_TYPES,
    RuleOutcome,
    Vocabulary,
)
from qmf.errors import CallerError, SchemaProblem

#: A line of this many characters or more is an error.
MAX_LINE = 1024

#: The largest quota.
MAX_QUOTA = 65_530

_BLANKS = re.compile(r"[ \t\n\f\v\r]+")
_GROUP_NAME = re.compile(r"[A-Za-z0-9_-]*")
_USER_NAME = re.compile(r"[A-Za-z0-9_@./-]*")


class AclError(CallerError):
    """A file of access control is invalid.

    Attributes:
        problems: every fault found, in file order.
    """

    def __init__(self, problems: Iterable[SchemaProblem]) -> None:
        self.problems: tuple[SchemaProblem, ...] = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(
            f"ACL format error: {problem.file}:{problem.line}: {problem.message}" for problem in self.problems
        )


class _Fault(Exception):
    """A line is invalid; the argument is what is wrong."""


@attrs.define
class _Reader:
    file: str
    resolver: Resolver
    vocabulary: Vocabulary
    problems: list[SchemaProblem] = attrs.field(factory=list)
    warnings: list[SchemaProblem] = attrs.field(factory=list)
    groups: dict[str, set[str]] = attrs.field(factory=dict)
    group_lines: dict[str, int] = attrs.field(factory=dict)
    used_groups: set[str] = attrs.field(factory=set)
    #: The names of the groups within each group, and its own.
    subgroups: dict[str, frozenset[str]] = attrs.field(factory=dict)
    rules: list[AclRule] = attrs.field(factory=list)
    quotas: Mapping[str, dict[str, int]] = attrs.field(factory=lambda: {"connections": {}, "queues": {}})
    group_quotas: Mapping[str, dict[str, int]] = attrs.field(factory=lambda: {"connections": {}, "queues": {}})
    #: The group that the next line continues, if one does.
    continued: str | None = None
    #: The line before ended with a continuation, and was no line of a group.
    misplaced: bool = False
    line: int = 0
    text: str = ""

    def read(self, lines: Iterable[str]) -> None:
        for self.line, self.text in enumerate(lines, 1):
            try:
                self._read_line(self.text)
            except _Fault as fault:
                self._report(self.problems, f"Line : {self.line}, {fault}")

    def _read_line(self, text: str) -> None:
        if len(text.encode()) >= MAX_LINE:
            self.continued = None
            raise _Fault(f"a line has at most {MAX_LINE - 1:,} characters, this one {len(text.encode()):,}.")
        if not text or text.startswith("#"):
            return
        content, backslash, _ = text.rpartition("\\")
        tokens = [token for token in _BLANKS.split(content if backslash else text) if token]
        if backslash and not tokens:
            raise _Fault("a line that is continued can't be empty, it contains an illegal extension.")
        group, self.continued = self.continued, None
        if self.misplaced:
            self.misplaced = bool(backslash)
            raise _Fault('only lines that begin with "group" can be continued; the line before is.')
        if not tokens:
            return
        if group is not None or tokens[0] == "group":
            self._read_group(group, tokens, continues=bool(backslash))
            return
        self.misplaced = bool(backslash)
        reader = _READERS.get(tokens[0])
        if reader is None:
            raise _Fault('Non-continuation line must start with "group", "acl". or "quota".')
        reader(self, tokens)

    # Groups

    def _read_group(self, group: str | None, tokens: Sequence[str], *, continues: bool) -> None:
        if group is None:
            if len(tokens) < (2 if continues else 3):
                raise _Fault("Insufficient tokens for group definition.")
            group, members = tokens[1], tokens[2:]
            if not _GROUP_NAME.fullmatch(group):
                raise _Fault(f'Group name "{group}" contains illegal characters.')
            if group in self.groups:
                raise _Fault(f'Duplicate group name "{group}".')
            self.groups[group] = set()
            self.subgroups[group] = frozenset({group})
            self.group_lines[group] = self.line
        else:
            members = tokens
        self.continued = group if continues else None
        for member in members:
            self.groups[group] |= self._members(group, member)

    def _members(self, group: str, member: str) -> set[str]:
        if _GROUP_NAME.fullmatch(member):
            if member == group:
                self._warn(f'the group "{group}" contains itself')
                return set()
            if member not in self.groups:
                raise _Fault(f'Sub-group "{member}" not defined yet. (A user has a realm: {member}@QPID)')
            self.used_groups.add(member)
            self.subgroups[group] |= self.subgroups[member]
            return self.groups[member]
        if "@" not in member or (member.endswith("@") and member.count("@") == 1):
            raise _Fault(f"Username '{member}' must contain a realm")
        if not _USER_NAME.fullmatch(member):
            raise _Fault(f'Username "{member}" contains illegal characters.')
        return {member}

    # Quotas

    def _read_quota(self, tokens: Sequence[str]) -> None:
        if len(tokens) < 3:
            raise _Fault("Insufficient tokens for quota definition.")
        kind, number = tokens[1:3]
        if kind not in self.quotas:
            raise _Fault(f'Quota type "{kind}" unrecognized.')
        if not re.fullmatch(r"\+?[0-9]+", number) or int(number) > 65_535:
            raise _Fault(f'{kind} quota value "{number}" cannot be converted to a 16-bit unsigned integer.')
        if int(number) > MAX_QUOTA:
            raise _Fault(f'{kind} quota value "{number}" exceeds maximum configuration setting of {MAX_QUOTA}')
        self.used_groups.update(tokens[3:])
        for name in tokens[3:]:
            for user in self.groups.get(name, {name}):
                self.quotas[kind][user] = int(number)
            for group in self._token_groups(name):
                self.group_quotas[kind][group] = int(number)

    # Rules

    def _read_rule(self, tokens: Sequence[str]) -> None:
        if len(tokens) < 4:
            raise _Fault("Insufficient tokens for acl definition.")
        permission, subject, action = tokens[1:4]
        if permission not in {outcome.value for outcome in RuleOutcome}:
            raise _Fault(f'Unknown ACL permission "{permission}".')
        if action == ALL and subject == ALL and len(tokens) > 4:
            raise _Fault('Tokens found after action "all".')
        if action != ALL and action not in ACTIONS:
            raise _Fault(f'Unknown action "{action}".')
        object_type = tokens[4] if len(tokens) > 4 else ALL
        if object_type != ALL and object_type not in OBJECT_TYPES:
            raise _Fault(f'Unknown object "{object_type}".')
        rule = AclRule(
            self.line,
            self.text.strip(),
            RuleOutcome(permission),
            subject,
            None if subject == ALL else frozenset(self.groups.get(subject, {subject})),
            None if action == ALL else action,
            None if object_type == ALL else object_type,
            self._read_properties(tokens[5:]),
            self._token_groups(subject),
            self.vocabulary,
        )
        self._check_use(rule)
        self.rules.append(rule)

    def _token_groups(self, name: str) -> frozenset[str]:
        """The groups by whose names an access token can say that its user is who a line is for."""
        return self.subgroups.get(name, frozenset() if name == ALL or "@" in name else frozenset({name}))

    def _read_properties(self, tokens: Sequence[str]) -> Mapping[str, str]:
        properties: dict[str, str] = {}
        for token in tokens:
            name, _, value = token.partition("=")
            if not value:
                raise _Fault(f'Badly formed property name-value pair "{token}". (Must be name=value)')
            name = ALIASES.get(name, name)
            if name not in self.vocabulary.rule_properties:
                raise _Fault(f'Unknown property "{name}".')
            if name in properties:
                self._warn(f'"{token}" is ignored: the property stands in the line before')
                continue
            _check_value(name, value)
            properties[name] = value
        return properties

    def _check_use(self, rule: AclRule) -> None:
        """Warn of what has no effect."""
        if rule.users is not None and (strange := sorted(user for user in rule.users if "@" not in user)):
            self._warn(
                f'no user is named "{strange[0]}": users have a realm, and no group of this name stands before; '
                "the groups of access tokens need no line"
            )
        if rule.action is None or rule.object_type is None or rule.concerns(rule.action, rule.object_type):
            return
        if any(rule.properties) and AclRule.concerns(attrs.evolve(rule, properties={}), rule.action, rule.object_type):
            reason = f"nothing that is asked for has the properties {', '.join(rule.properties)}"
        else:
            reason = "nothing of the kind is ever asked for"
        self._warn(f'the rule never matches "{rule.action} {rule.object_type}": {reason}')

    # The whole

    def compile(self) -> RuleSet:
        """The rules in effect, when all lines have been read."""
        rules = list(self.rules)
        default = next((rule for rule in reversed(rules) if rule.is_default), None)
        if default is not None:
            rules.remove(default)
        hosts: list[HostRule] = []
        of_all: HostRule | None = None
        for rule in [rule for rule in rules if (rule.action, rule.object_type) == ("create", "connection")]:
            rules.remove(rule)
            host = self._host_rule(rule)
            if host is None:
                continue
            if rule.users is None and host.hosts.low is None:
                if of_all is not None:
                    self._fault_of(rule, "only one CREATE CONNECTION rule for user=all and host=all allowed")
                of_all = host
            else:
                hosts.append(host)
        return RuleSet(
            self.file,
            rules,
            default,
            hosts,
            of_all,
            {name: frozenset(members) for name, members in self.groups.items()},
            self.group_lines,
            self.used_groups,
            {kind: Quotas(users, self.group_quotas[kind]) for kind, users in self.quotas.items()},
            self.warnings,
            self.vocabulary,
        )

    def _host_rule(self, rule: AclRule) -> HostRule | None:
        if not {*rule.properties} <= {"name", "host"}:
            return None  # it never matches: a warning reports that
        if "name" in rule.properties:
            self._fault_of(rule, "CREATE CONNECTION rule must not have a 'name' property")
            return None
        text = rule.properties.get("host")
        if text is None:
            self._fault_of(rule, "CREATE CONNECTION rule has no 'host' property")
            return None
        try:
            return HostRule(rule, HostRange() if text == ALL else HostRange.parse(text, self.resolver))
        except ValueError as error:
            self._fault_of(rule, f"Invalid AclHost: {error}")
            return None

    def _fault_of(self, rule: AclRule, message: str) -> None:
        self.problems.append(SchemaProblem(self.file, rule.line, f"Line : {rule.line}, {message}"))

    def _warn(self, message: str) -> None:
        self._report(self.warnings, message)

    def _report(self, problems: list[SchemaProblem], message: str) -> None:
        problems.append(SchemaProblem(self.file, self.line, message))


_READERS: Mapping[str, Callable[[_Reader, Sequence[str]], None]] = {
    "acl": _Reader._read_rule,
    "quota": _Reader._read_quota,
}


def read(text: str, file: str, *, resolver: Resolver = resolve, vocabulary: Vocabulary = BROKER) -> RuleSet:
    """Read rules.

    Args:
        text: of the file.
        file: its name, for messages.
        resolver: finds the addresses of hosts that rules name.
        vocabulary: the words of this kind of file.

    Raises:
        AclError: the text is invalid.
    """
    reader = _Reader(file, resolver, vocabulary)
    reader.read(text.split("\n"))
    rules = reader.compile()
    if reader.problems:
        raise AclError(sorted(reader.problems, key=lambda problem: problem.line))
    return rules


def _check_value(name: str, value: str) -> None:
    if name in LIMITS and not (re.fullmatch(r"[0-9]+", value) and int(value) < MAX_LIMIT):
        raise _Fault(f"{value} is not a valid value for '{name}', values should be between 0 and {MAX_LIMIT}")
    if name == "policytype" and value not in POLICY_TYPES:
        allowed = " ".join(f"'{known}'" for known in POLICY_TYPES)
        raise _Fault(f"{value} is not a valid value for 'policytype', possible values are one of {{ {allowed} }}")
