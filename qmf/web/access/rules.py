"""Rules about methods, in the language of the broker's access control: which caller may call what on which class.

Scopes say whether a caller may call at all; rules divide that. They are looked up as the broker does it for its own
methods: ``access method NAME`` with ``schemapackage`` and ``schemaclass``; setting properties is the method
``_set_properties``.
"""

from __future__ import annotations

import logging
from pathlib import Path

from qmf._text_files import file_version, read_text
from qmf.acl.reader import AclError, read
from qmf.acl.rules import Lookup
from qmf.acl.ruleset import RuleSet
from qmf.errors import CallerError
from qmf.schema import ClassKey
from qmf.web.access.caller import Caller, Proof
from qmf.web.problems import Problem

log = logging.getLogger("qmf.web.access")

#: The realm of users whose names have none, as with the broker.
REALM = "QPID"
#: The realm of API tokens: no user can have the name of a token.
TOKEN_REALM = "token"
#: Stands for the method that sets properties.
SET_PROPERTIES = "_set_properties"


class WebRulesError(CallerError):
    """A file of rules can't be read; the text names it and the reason."""


class MethodRules:
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

    def refusal(self, caller: Caller, method: str, key: ClassKey | None) -> str:
        """Why a caller may not call a method of a class; empty if it may."""
        self._reload()
        if self._rules is None:
            return ""
        properties = {} if key is None else {"schemapackage": key.package, "schemaclass": key.name}
        decision = self._rules.decide(
            Lookup(user_of(caller), "access", "method", method, properties, groups=caller.groups)
        )
        if decision.allows:
            return ""
        where = "" if key is None else f" of {key.package}:{key.name}"
        return f"{caller.client} may not call {method}{where}: the rules deny it"

    def check(self, caller: Caller, method: str, key: ClassKey | None) -> None:
        """Raise an error if a caller may not call a method.

        Raises:
            Problem: 403.
        """
        if reason := self.refusal(caller, method, key):
            raise Problem(403, reason)

    def _reload(self) -> None:
        if self._path is None or (version := file_version(self._path)) == self._version:
            return
        self._version = version
        try:
            self._rules = read_rules(self._path)
        except (AclError, WebRulesError) as error:
            log.error("the rules stay as they were: %s", error)


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
    found = read(read_text(path, WebRulesError), str(path))
    for problem in found.warnings:
        log.warning("%s", problem)
    return found
