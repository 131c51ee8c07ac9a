"""What the daemon reads again on SIGHUP: users, certificate, log files. What is wrong leaves the old state in place."""

from __future__ import annotations

import datetime
import logging
from pathlib import Path

import attrs

from qmf._audit_log import AuditFile
from qmf.acl.reader import AclError
from qmf.broker.access.control import AclFileError, FileAccessControl
from qmf.broker.daemon.log_output import LogOutputError, LogWriter
from qmf.broker.daemon.log_rules import NOTICE
from qmf.broker.daemon.tls import BrokerTls
from qmf.broker.server import Broker
from qmf.connecting.tls import TlsError
from qmf.users.files import read_users
from qmf.users.verifiers import UsersError

log = logging.getLogger("qmf.broker")


@attrs.frozen(eq=False)
class Reloader:
    """Reads files of a running broker again, of what it has. Belongs to its loop."""

    _broker: Broker
    _writer: LogWriter
    _users: Path | None
    _tls: BrokerTls | None
    _access: FileAccessControl | None
    _audit: AuditFile | None = None

    def reload(self) -> None:
        """Read all again; the log says what was read, and what could not be used."""
        done: list[str] = []
        try:
            if count := self._writer.reopen():
                done.append(f"{count} log {'file' if count == 1 else 'files'}")
        except LogOutputError as error:
            log.error("SIGHUP: the log goes on as before: %s", error)
        try:
            if self._audit is not None:
                self._audit.reopen()
                done.append("the audit log")
        except OSError as error:
            log.error("SIGHUP: the audit log goes on as before: %s", error)
        try:
            if self._users is not None:
                users = read_users(self._users)
                self._broker.set_users(users)
                done.append(f"{len(users)} {'user' if len(users) == 1 else 'users'}")
        except UsersError as error:
            log.error("SIGHUP: the users stay as they were: %s", error)
        try:
            if self._tls is not None:
                self._tls.reload()
                done.append("the certificate")
                if warning := self._tls.expiry_warning(datetime.datetime.now(datetime.UTC)):
                    log.warning("%s", warning)
        except TlsError as error:
            log.error("SIGHUP: the certificate stays as it was: %s", error)
        try:
            if self._access is not None:
                self._access.reload()
                done.append(f"{len(self._access.rules.rules)} rules")
        except (AclError, AclFileError) as error:
            log.error("SIGHUP: the rules stay as they were: %s", error)
        log.log(NOTICE, "SIGHUP: read again: %s", ", ".join(done) or "nothing")
