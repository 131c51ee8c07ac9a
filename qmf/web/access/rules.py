"""Rules of the web server, in the language of the broker's access control: who may read, call, send and consume what.

Scopes say whether a caller may do something at all; rules divide that. They are looked up as the broker does it:
``access query NAME`` for objects and events, ``access method NAME`` for calls (setting properties is the method
``_set_properties``), ``publish exchange`` and ``consume queue`` or ``bind exchange`` for messages.
"""

from __future__ import annotations

import logging
from pathlib import Path

import attrs

from qmf._text_files import file_version, read_text
from qmf.acl.reader import AclError, read
from qmf.acl.rules import Lookup
from qmf.acl.ruleset import RuleSet
from qmf.acl.words import WEB
from qmf.console.aio import RemoteObject
from qmf.errors import CallerError
from qmf.protocol import ObjectId
from qmf.schema import ClassKey
from qmf.web.access.read_rights import ReadRights, local_name
from qmf.web.problems import Problem
from qmf.web.scopes import Caller, Proof

log = logging.getLogger("qmf.web.access")

#: The realm of users whose names have none, as with the broker.
REALM = "QPID"
#: The realm of API tokens: no user can have the name of a token.
TOKEN_REALM = "token"
#: Stands for the method that sets properties.
SET_PROPERTIES = "_set_properties"


class WebRulesError(CallerError):
    """A file of rules can't be read; the text names it and the reason."""


@attrs.frozen
class CalledObject:
    """An object whose method is called, as rules see it.

    Attributes:
        key: its class, if it has one.
        object_id: its id, with the name of its agent.
    """

    key: ClassKey | None
    object_id: ObjectId


def called_object(obj: RemoteObject) -> CalledObject:
    """An object as rules see it."""
    return CalledObject(obj.class_key, obj.object_id)


class WebRules:
    """The rules of a file, which is read again when it changes; or none, so that scopes alone decide."""

    def __init__(self, path: Path | None) -> None:
        """Read the file.

        Raises:
            AclError: it is invalid.
            WebRulesError: it can't be read.
        """
        self._path = path
        self._version = None if path is None else file_version(path)
        self._rules = None if path is None else read_rules(path)
        self._rights: dict[tuple[str, frozenset[str]], ReadRights] = {}

    @property
    def current(self) -> RuleSet | None:
        """The rules as they are now, another value when they changed; None without a file."""
        self._reload()
        return self._rules

    def read_rights(self, caller: Caller) -> ReadRights | None:
        """What a caller may read; None where that is everything. Another value when the rules changed."""
        rules = self.current
        if rules is None:
            return None
        key = user_of(caller), caller.groups
        found = self._rights.get(key)
        if found is None:
            if len(self._rights) >= _MAX_RIGHTS:
                self._rights.clear()
            found = self._rights[key] = ReadRights(rules, *key)
        return None if found.everything else found

    def refusal(self, caller: Caller, method: str, called: CalledObject) -> str:
        """Why a caller may not call a method of an object; empty if it may."""
        key, object_id = called.key, called.object_id
        properties = {"agent": object_id.agent_name or "", "object": local_name(key, object_id.object_name)}
        if key is not None:
            properties |= {"schemapackage": key.package, "schemaclass": key.name}
        if self._allows(caller, "access", "method", method, properties):
            return ""
        where = "" if key is None else f" of {key.package}:{key.name}"
        return f"{caller.client} may not call {method}{where}: the rules deny it"

    def check(self, caller: Caller, method: str, called: CalledObject) -> None:
        """Raise an error if a caller may not call a method of an object.

        Raises:
            Problem: 403.
        """
        if reason := self.refusal(caller, method, called):
            raise Problem(403, reason)

    def may_send(self, caller: Caller, name: str, *, topic: bool) -> bool:
        """Whether a caller may send messages to a queue, or to a topic."""
        key = {"routingkey": "" if topic else name}
        return self._allows(caller, "publish", "exchange", name if topic else "", key, publishing=True)

    def may_consume(self, caller: Caller, name: str, *, topic: bool) -> bool:
        """Whether a caller may consume from a queue, or subscribe to all messages of a topic."""
        if topic:
            return self._allows(caller, "bind", "exchange", name, {"queuename": "", "routingkey": "#"})
        return self._allows(caller, "consume", "queue", name, {})

    def _allows(
        self,
        caller: Caller,
        action: str,
        object_type: str,
        name: str,
        properties: dict[str, str],
        *,
        publishing: bool = False,
    ) -> bool:
        rules = self.current
        if rules is None:
            return True
        lookup = Lookup(user_of(caller), action, object_type, name, properties, publishing, caller.groups)
        return rules.decide(lookup).allows

    def _reload(self) -> None:
        if self._path is None or (version := file_version(self._path)) == self._version:
            return
        self._version = version
        try:
            self._rules = read_rules(self._path)
            self._rights = {}
        except (AclError, WebRulesError) as error:
            log.error("the rules stay as they were: %s", error)


#: Callers whose rights are remembered.
_MAX_RIGHTS = 1000


def user_of(caller: Caller) -> str:
    """A caller as rules name it."""
    if not caller.name:
        return "anonymous"
    return f"{caller.name}@{TOKEN_REALM}" if caller.proof is Proof.TOKEN else full_name(caller.name)


def full_name(name: str) -> str:
    """The name of a user with its realm."""
    return name if "@" in name else f"{name}@{REALM}"


def read_rules(path: Path) -> RuleSet:
    """The rules of a file.

    Raises:
        AclError: it is invalid.
        WebRulesError: it can't be read.
    """
    found = read(read_text(path, WebRulesError), str(path), vocabulary=WEB)
    for problem in found.warnings:
        log.warning("%s", problem)
    return found
