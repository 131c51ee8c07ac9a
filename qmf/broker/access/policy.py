"""The `Policy` of a broker with a file of rules: the broker's questions, in the words of the file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from qmf.acl.rules import Lookup
from qmf.acl.ruleset import Decision, RuleSet
from qmf.broker.operations.policy import Action, KeyCheck, ObjectType, Operation
from qmf.broker.operations.principal import LOCAL, Principal

#: The user of clients that have not logged in, as with qpidd: without a realm.
ANONYMOUS = "anonymous"

#: Where nothing limits the size of a queue.
_ANY_SIZE = str(2**64 - 1)

#: Objects that files of rules have no word for: methods that create them are asked for as methods.
_WITHOUT_WORD = frozenset({ObjectType.TOPIC, ObjectType.QUEUE_POLICY, ObjectType.TOPIC_POLICY})

#: Overflow policies that files of rules know; others refuse messages.
_POLICY_TYPES = frozenset({"ring", "self-destruct"})


class AccessState(Protocol):
    """What a policy needs to know of numbers of connections and queues, and whom it reports to."""

    def excess(self, lookup: Lookup) -> str:
        """Why a user may not have one more connection or queue; empty if it may, and for all other lookups."""

    def report(self, lookup: Lookup, decision: Decision) -> None:
        """A decision was made."""


class AclPolicy:
    """A `Policy` by rules. The broker itself, and programs in its process, may do everything."""

    def __init__(
        self, rules: RuleSet, realm: str, state: AccessState, record: Callable[[Lookup], None] | None = None
    ) -> None:
        """Make the policy of a broker from rules.

        Args:
            rules: that decide.
            realm: of users whose names have none.
            state: numbers of connections and queues, and where decisions are reported.
            record: takes what clients ask for: a dry run, in which decisions are reported, and everything is allowed.
        """
        self._rules = rules
        self._record = record
        self._realm = realm
        self._state = state
        # A recording has the keys of messages as well, though without rules about them everybody may use them.
        self.has_key_rules = rules.has_publish_rules or record is not None

    def key_check(self, principal: Principal, exchange: str) -> KeyCheck | None:
        if self._record is not None:
            return None
        if principal.protocol in ("", LOCAL):
            return KeyCheck(lambda _: True, ("",))
        rules = self._rules.publishing_rules(user_id(principal.user, self._realm), principal.groups, exchange)
        return KeyCheck(rules.allows, rules.beginnings, rules.known)

    def refusal(self, principal: Principal, operation: Operation) -> str:
        if principal.protocol in ("", LOCAL) or operation.object_type in _WITHOUT_WORD:
            return ""
        refusal = self._decide(principal, operation)
        return "" if self._record is not None else refusal

    def _decide(self, principal: Principal, operation: Operation) -> str:
        if operation.action is Action.PUBLISH:
            return self._publishing_refusal(principal, operation)
        lookup = Lookup(
            user_id(principal.user, self._realm),
            "consume" if operation.action is Action.BROWSE else operation.action.value,
            operation.object_type.value,
            operation.name,
            _properties(operation),
            groups=principal.groups,
        )
        if self._record is not None:
            self._record(lookup)
        decision = self._rules.decide(lookup)
        if operation.held and decision.allows:
            return ""
        self._state.report(lookup, decision)
        return self._state.excess(lookup) if decision.allows else _refusal(decision)

    def _publishing_refusal(self, principal: Principal, operation: Operation) -> str:
        key = operation.properties.get("routingkey")
        if operation.name and not self.has_key_rules:
            return ""  # as with qpidd, who may access an exchange may publish to it, unless there are rules about that
        user, properties = user_id(principal.user, self._realm), {"routingkey": str(key or "")}
        lookup = Lookup(
            user, "publish", "exchange", operation.name, properties, publishing=True, groups=principal.groups
        )
        if self._record is not None:
            self._record(lookup)
        decision = self._rules.decide(lookup)
        if not decision.allows or (not operation.held and (decision.rule is None or decision.outcome.logs)):
            self._state.report(lookup, decision)
        return "" if decision.allows else _refusal(decision)


def user_id(user: str, realm: str) -> str:
    """A user as rules name it: with a realm, but for clients that have not logged in."""
    if not user:
        return ANONYMOUS
    return user if "@" in user else f"{user}@{realm}"


def _refusal(decision: Decision) -> str:
    return f"the ACL denies it (limit {decision.limit})" if decision.limit else "the ACL denies it"


def _properties(operation: Operation) -> Mapping[str, str]:
    """Those of an operation, as text. What is not known is left out."""
    found: dict[str, str] = {}
    named = operation.action in (Action.CREATE, Action.DELETE)
    for name, value in operation.properties.items():
        if name == "alternate":
            if value or named:
                found[name] = str(value or "")
        elif name == "policytype":
            found[name] = str(value) if value in _POLICY_TYPES else "reject"
        elif name == "maxqueuesize":
            found[name] = str(value or _ANY_SIZE)
        elif name == "maxqueuecount":
            if value:
                found[name] = str(value)
        else:
            found[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return found
