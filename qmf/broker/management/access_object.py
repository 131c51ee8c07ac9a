"""Explains decisions of access control: the class ``Access`` of the package ``qmf.security``."""

from __future__ import annotations

from qmf.acl.explanation import explain
from qmf.broker.access.control import FileAccessControl
from qmf.broker.access.policy import user_id
from qmf.broker.management.callers import current_principal
from qmf.broker.management.sampling import SampledObject
from qmf.broker.management.values import lstr
from qmf.models.security import agent as model

#: What agents of a broker with rules publish.
CLASSES = (model.Access,)

#: Asks for the denials of all users.
EVERYBODY = "all"
#: Denials that one call explains.
_MOST = 50


class ManagedAccess(model.Access, SampledObject):
    """The rules of a broker."""

    def __init__(self, access: FileAccessControl) -> None:
        super().__init__(name="rules", file=lstr(str(access.file)))
        self._access = access
        self.sample()

    def sample(self) -> None:
        self.denied.set(self._access.denials.requests)

    def explainDenials(self, userId: str, count: int) -> model.AccessExplainDenialsResult:
        access = self._access
        user = None if userId == EVERYBODY else user_id(userId or current_principal().user, access.realm)
        found: list[object] = []
        for denied in access.denied.latest(user):
            if len(found) == min(count or 1, _MOST):
                break
            lookup, why = denied.lookup, explain(access.rules, denied.lookup)
            found.append(
                {
                    "userId": lookup.user,
                    "action": lookup.action,
                    "objectType": lookup.object_type,
                    "objectName": lstr(lookup.name),
                    "properties": {name: lstr(value) for name, value in (lookup.properties or {}).items()},
                    "time": denied.time,
                    "count": denied.count,
                    "decision": lstr(str(why.decision)),
                    "passedOver": [lstr(str(passed)) for passed in why.passed],
                    "change": lstr(why.change),
                }
            )
        return model.AccessExplainDenialsResult(denials=found)

    def listRules(self, userId: str) -> model.AccessListRulesResult:
        principal, rules = current_principal(), self._access.rules
        user = user_id(userId or principal.user, self._access.realm)
        groups = frozenset() if userId else principal.groups
        return model.AccessListRulesResult(rules=[lstr(str(rule)) for rule in rules.of_user(user, groups)])
