"""The access control of a broker: reads its file, counts what users have, and reports decisions."""

from __future__ import annotations

import logging
import time
from collections import Counter
from pathlib import Path

import attrs

from qmf.acl.reader import AclError, read
from qmf.acl.rules import Lookup
from qmf.acl.ruleset import Decision, Quotas, RuleSet
from qmf.acl.words import ALL
from qmf.broker.access.denials import DeniedRequests
from qmf.broker.access.policy import AclPolicy, user_id
from qmf.broker.access.recording import AccessRecord
from qmf.broker.nodes.observed_clients import BrokerClient, ClientSession
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import LOCAL
from qmf.errors import CallerError

log = logging.getLogger("qmf.broker.access")

#: The realm of users by default, as with qpidd.
REALM = "QPID"


class AclFileError(CallerError):
    """A file of rules can't be read; the text names it and the reason."""


@attrs.define
class Denials:
    """What was denied since the start.

    Attributes:
        requests: by rules.
        connections: by rules for hosts, or quotas.
        queues: by quotas.
    """

    requests: int = 0
    connections: int = 0
    queues: int = 0


class AccessWatcher:
    """Notified of decisions. This one does nothing."""

    def on_decision(self, lookup: Lookup, decision: Decision) -> None:
        """A rule with logging has decided."""

    def on_connection_denied(self, user: str, host: str) -> None:
        """A client may not connect."""

    def on_queue_denied(self, user: str, queue: str) -> None:
        """A user has too many queues."""

    def on_loaded(self) -> None:
        """The file was read, and its rules are in effect."""

    def on_load_failed(self, reason: str) -> None:
        """The file was read again, and is invalid: the rules are those from before."""


class FileAccessControl(BrokerObserver):
    """Decides by a file, which can be read again; the `AccessState` of its policy.

    Attributes:
        file: with the rules.
        rules: in effect.
        loaded: when they were read, in nanoseconds since 1970.
        denials: counted.
        denied: the last requests that rules have denied.
        realm: of users whose names have none.
        connections_per_user, queues_per_user: limits of users for whom the file has none; 0 for no limit.
        watchers: notified of decisions.
    """

    def __init__(
        self,
        file: Path,
        *,
        realm: str = REALM,
        connections_per_user: int = 0,
        queues_per_user: int = 0,
        record: AccessRecord | None = None,
    ) -> None:
        """Read the file.

        Args:
            file, realm, connections_per_user, queues_per_user: see above.
            record: a dry run: what clients ask for is recorded there, and everything is allowed.

        Raises:
            AclError: the file is invalid.
            AclFileError: it can't be read.
        """
        self.file = file
        self.connections_per_user = connections_per_user
        self.queues_per_user = queues_per_user
        self.denials = Denials()
        self.denied = DeniedRequests()
        self.realm = realm
        self._record = record
        self.watchers: list[AccessWatcher] = []
        self._operations: Operations | None = None
        self._connections: Counter[str] = Counter()
        self._queues: Counter[str] = Counter()
        #: Users of the queues that are counted.
        self._owners: dict[Queue, str] = {}
        self._load()

    def apply(self, operations: Operations) -> None:
        """Let the rules decide on the operations of a broker, from now on and after each `reload`."""
        self._operations = operations
        record = None if self._record is None else self._record.add
        operations.policy = AclPolicy(self.rules, self.realm, self, record)

    def reload(self) -> None:
        """Read the file again.

        Raises:
            AclError, AclFileError: as of the constructor; the rules are those from before.
        """
        try:
            self._load()
        except (AclError, AclFileError) as error:
            for watcher in self.watchers:
                watcher.on_load_failed(str(error))
            raise
        if self._operations is not None:
            self.apply(self._operations)
        for watcher in self.watchers:
            watcher.on_loaded()

    def _load(self) -> None:
        try:
            text = self.file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise AclFileError(f"Unable to open ACL file {str(self.file)!r}: {error}") from error
        self.rules: RuleSet = read(text, str(self.file))
        self.loaded = time.time_ns()
        for problem in self.rules.warnings:
            log.warning("%s", problem)

    # Quotas

    def excess(self, lookup: Lookup) -> str:
        kind = (lookup.action, lookup.object_type)
        if kind == ("create", "connection"):
            limit = self._limit("connections", self.connections_per_user, lookup)
            if limit is not None and self._connections[lookup.user] >= limit:
                log.error("Client max per-user connection count limit of %d exceeded by %s", limit, lookup.user)
                self._deny_connection(lookup)
                return f"the limit of {limit} connections of user {lookup.user!r} is reached"
        elif kind == ("create", "queue"):
            limit = self._limit("queues", self.queues_per_user, lookup)
            if limit is not None and self._queues[lookup.user] >= limit:
                log.error("Client max queue count limit of %d exceeded by %s", limit, lookup.user)
                self.denials.queues += 1
                for watcher in self.watchers:
                    watcher.on_queue_denied(lookup.user, lookup.name)
                return f"the limit of {limit} queues of user {lookup.user!r} is reached"
        return ""

    def _limit(self, kind: str, of_all: int, lookup: Lookup) -> int | None:
        quotas = self.rules.quotas[kind]
        if of_all:
            quotas = Quotas({ALL: of_all, **quotas.users}, quotas.groups)
        return quotas.limit(lookup.user, lookup.groups)

    # Reports

    def report(self, lookup: Lookup, decision: Decision) -> None:
        if (lookup.action, lookup.object_type) == ("create", "connection"):
            if not decision.allows:
                log.error("connection of %s from %s refused: %s", lookup.user, _host(lookup), decision)
                self.denied.add(lookup)
                self._deny_connection(lookup)
            return
        if not decision.allows:
            self.denied.add(lookup)
            self.denials.requests += 1
            log.debug("%s: %s", lookup, decision)
        if not decision.outcome.logs:
            return
        log.info(
            "ACL %s id:%s action:%s ObjectType:%s Name:%s",
            "Allow" if decision.allows else "Deny",
            lookup.user,
            lookup.action,
            lookup.object_type,
            lookup.name,
        )
        for watcher in self.watchers:
            watcher.on_decision(lookup, decision)

    def _deny_connection(self, lookup: Lookup) -> None:
        self.denials.connections += 1
        for watcher in self.watchers:
            watcher.on_connection_denied(lookup.user, _host(lookup))

    # Observer

    def on_connected(self, client: ClientSession) -> None:
        if not client.info.domain:
            self._connections[self._user(client)] += 1

    def on_disconnected(self, client: ClientSession) -> None:
        if not client.info.domain:
            _decrement(self._connections, self._user(client))

    def on_queue_declared(self, queue: Queue, client: BrokerClient | None) -> None:
        if client is not None and client.info.protocol != LOCAL:
            user = self._owners[queue] = self._user(client)
            self._queues[user] += 1

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:  # noqa: ARG002
        if (user := self._owners.pop(queue, None)) is not None:
            _decrement(self._queues, user)

    def _user(self, client: BrokerClient) -> str:
        return user_id(client.info.user, self.realm)


def _decrement(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


def _host(lookup: Lookup) -> str:
    return (lookup.properties or {}).get("host", "")
