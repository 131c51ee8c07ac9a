"""The words of access control lists: actions, types of objects, properties, and what qpidd looks up."""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs

#: Stands for all users, all actions or all types of objects.
ALL = "all"

#: The exchange without a name, in rules for publishing.
DEFAULT_EXCHANGE = "amq.default"


#: Replaced by the user, with ``@`` and ``.`` as ``_``: what stands before the ``@``, what stands behind, and all of it.
USER, DOMAIN, USER_DOMAIN = "${user}", "${domain}", "${userdomain}"
PLACEHOLDERS = (USER, DOMAIN, USER_DOMAIN)

#: Properties in whose values placeholders are replaced.
WITH_PLACEHOLDERS = frozenset({"name", "alternate", "queuename", "routingkey", "object"})


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ACTIONS = _words("access bind consume create delete move publish purge redirect reroute unbind update")
OBJECT_TYPES = _words("broker connection exchange link method query queue")

#: Properties with the same name in rules and lookups.
_PLAIN = _words(
    "name durable owner routingkey autodelete exclusive type alternate queuename exchangename schemapackage "
    "schemaclass policytype paging host"
)

#: What a limit on a number is called in rules, without ``lowerlimit`` or ``upperlimit``, and in lookups.
_LIMITED = {
    "queuemaxsize": "maxqueuesize",
    "queuemaxcount": "maxqueuecount",
    "filemaxsize": "maxfilesize",
    "filemaxcount": "maxfilecount",
    "pages": "maxpages",
    "pagefactor": "maxpagefactor",
}


@attrs.frozen
class Limit:
    """A bound on a number of a lookup.

    Attributes:
        property: of the lookup.
        upper: the number may not be larger; otherwise it may not be smaller.
    """

    property: str
    upper: bool


#: Properties of rules that are limits.
LIMITS: Mapping[str, Limit] = {
    f"{name}{bound}limit": Limit(looked_up, bound == "upper")
    for name, looked_up in _LIMITED.items()
    for bound in ("lower", "upper")
}

#: Properties of rules under an older name.
ALIASES: Mapping[str, str] = {"maxqueuesize": "queuemaxsizeupperlimit", "maxqueuecount": "queuemaxcountupperlimit"}

#: Properties of rules.
RULE_PROPERTIES = frozenset({*_PLAIN, *LIMITS})

#: Properties of lookups.
LOOKUP_PROPERTIES = frozenset({*_PLAIN, *_LIMITED.values()})

#: Values of ``policytype``.
POLICY_TYPES = ("ring", "self-destruct", "reject")

#: Limits are below this.
MAX_LIMIT = 2**63 - 1

_ACCESSED_QUEUE = "alternate durable exclusive autodelete policytype maxqueuecount maxqueuesize"
_BOUND = "queuename routingkey"

#: What is looked up, by action and type of object: for each lookup of the broker the properties that it has besides the
#: name. A rule whose properties no lookup has together can't match.
LOOKUPS: Mapping[tuple[str, str], tuple[frozenset[str], ...]] = {
    key: tuple(_words(properties) for properties in lookups)
    for key, lookups in {
        ("access", "broker"): ("",),
        ("access", "exchange"): ("", _BOUND, "type alternate durable autodelete", "type durable"),
        ("access", "method"): ("schemapackage schemaclass",),
        ("access", "query"): ("schemaclass",),
        ("access", "queue"): ("", _ACCESSED_QUEUE),
        ("bind", "exchange"): (_BOUND,),
        ("unbind", "exchange"): (_BOUND,),
        ("consume", "queue"): ("",),
        ("create", "connection"): ("host",),
        ("create", "exchange"): ("type alternate durable autodelete",),
        ("create", "link"): ("",),
        ("create", "queue"): (f"{_ACCESSED_QUEUE} paging maxpages maxpagefactor maxfilecount maxfilesize",),
        ("delete", "exchange"): ("type alternate durable",),
        ("delete", "queue"): ("alternate durable exclusive autodelete policytype",),
        ("move", "queue"): ("queuename",),
        ("publish", "exchange"): ("routingkey",),
        ("purge", "queue"): ("",),
        ("redirect", "queue"): ("queuename",),
        ("reroute", "queue"): ("exchangename",),
        ("update", "broker"): ("",),
    }.items()
}


@attrs.frozen(eq=False)
class Vocabulary:
    """The words of a kind of file.

    Attributes:
        lookups: what is looked up, as `LOOKUPS`.
        rule_properties: of rules.
        lookup_properties: of lookups.
    """

    lookups: Mapping[tuple[str, str], tuple[frozenset[str], ...]]
    rule_properties: frozenset[str]
    lookup_properties: frozenset[str]

    def can_match(self, action: str, object_type: str, properties: Mapping[str, str]) -> bool:
        """Whether anything is looked up that has all these properties of a rule."""
        needed = {LIMITS[name].property if name in LIMITS else name for name in properties} - {"name"}
        return any(needed <= lookup for lookup in self.lookups.get((action, object_type), ()))


#: Files of brokers.
BROKER = Vocabulary(LOOKUPS, RULE_PROPERTIES, LOOKUP_PROPERTIES)

#: What `qmf-web` knows besides: the agent of an object, and the object whose method is called.
_WEB = _words("agent object")

#: Files of `qmf-web`: what may be read (``query``) and called (``method``) of any agent, and who may send and consume.
WEB = Vocabulary(
    {
        ("access", "method"): (_words("schemapackage schemaclass agent object"),),
        ("access", "query"): (_words("schemapackage schemaclass agent"),),
        **{key: LOOKUPS[key] for key in (("bind", "exchange"), ("consume", "queue"), ("publish", "exchange"))},
    },
    RULE_PROPERTIES | _WEB,
    LOOKUP_PROPERTIES | _WEB,
)


class RuleOutcome(enum.Enum):
    """What a rule decides."""

    ALLOW = "allow"
    ALLOW_LOG = "allow-log"
    DENY = "deny"
    DENY_LOG = "deny-log"

    @property
    def allows(self) -> bool:
        """The operation is done."""
        return self in (RuleOutcome.ALLOW, RuleOutcome.ALLOW_LOG)

    @property
    def logs(self) -> bool:
        """The decision is logged, and an event reports it."""
        return self in (RuleOutcome.ALLOW_LOG, RuleOutcome.DENY_LOG)

    def deny(self) -> RuleOutcome:
        """The outcome where a limit is exceeded: what would be allowed is denied."""
        return {RuleOutcome.ALLOW: RuleOutcome.DENY, RuleOutcome.ALLOW_LOG: RuleOutcome.DENY_LOG}.get(self, self)
