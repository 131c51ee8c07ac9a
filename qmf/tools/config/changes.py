"""The commands of `qpid-config` that change a broker; with ``--dry-run`` they only say what they would do."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qmf.client import BrokerAgent, ErrorCode
from qmf.errors import CallerError, RemoteError
from qmf.messaging import ConnectionError
from qmf.tools.config.arguments import (
    exchange_properties,
    extra_properties,
    header_arguments,
    ignored_options,
    queue_properties,
)

#: What the names of the agents in qpidd begin with.
QPIDD = "apache.org:qpidd:"
HA_BROKER = "org.apache.qpid.ha:habroker:ha-broker"


class ChangeError(CallerError):
    """A change is not possible; the message says why."""


class Changes:
    """The changes that the options of one call ask for."""

    def __init__(self, broker: BrokerAgent, options: argparse.Namespace) -> None:
        self._broker = broker
        self._options = options

    def add(self, kind: str, words: Sequence[str]) -> None:
        """Create a queue, an exchange, or an object of another type."""
        options = self._options
        if options.durable and not self._has_store():
            print("Warning: --durable: this broker has no store, so nothing outlives its restart", file=sys.stderr)
        if kind == "exchange":
            if len(words) != 2:
                options.usage_error("add exchange needs a type and a name")
            properties = {"exchange-type": words[0], **exchange_properties(options)}
            self._create("exchange", words[1], properties, strict=True)
            return
        if len(words) != 1:
            options.usage_error(f"add {kind} needs a name")
        if kind != "queue":
            properties = extra_properties(options.arguments)
            if options.durable:
                properties["durable"] = True
            self._create(kind, words[0], properties, strict=False)
            return
        for warning in ignored_options(options):
            print(f"Warning: {warning}", file=sys.stderr)
        self._create("queue", words[0], queue_properties(options), strict=True)
        if options.start_replica:
            arguments = {"broker": options.start_replica, "queue": words[0]}
            self._do(
                f"replicate queue {words[0]!r}", arguments, lambda: self._broker.call("replicate", arguments, HA_BROKER)
            )

    def delete(self, kind: str, words: Sequence[str]) -> None:
        """Delete a queue, an exchange, or an object of another type."""
        options = self._options
        if len(words) != 1:
            options.usage_error(f"del {kind} needs a name")
        name = words[0]
        settings: dict[str, Any] = {}
        if kind == "queue":
            settings = {
                "if_empty": not (options.force or options.force_if_not_empty),
                "if_unused": not (options.force or options.force_if_used),
            }
        if options.dry_run and kind in ("queue", "exchange") and self._broker.query(kind, name) is None:
            raise ChangeError(f"there is no {kind} {name!r}")
        self._do(f"delete {kind} {name!r}", settings, lambda: self._broker.delete(kind, name, settings))

    def bind(self, words: Sequence[str]) -> None:
        """Bind a queue to an exchange."""
        exchange, queue, key = self._ends("bind", words)
        found = self._broker.getExchange(exchange)
        if self._options.dry_run and found is None:
            raise ChangeError(f"there is no exchange {exchange!r}")
        arguments: dict[str, Any] = {}
        if found is not None and found.type == "headers":
            try:
                arguments = header_arguments(words[3:])
            except ValueError as error:
                raise ChangeError(str(error)) from None
        elif found is not None and found.type == "xml":
            arguments = {"xquery": self._xquery()}
        elif len(words) > 3:
            self._options.usage_error(f"{' '.join(words[3:])!r}: only bindings to headers exchanges have conditions")
        what = f"bind exchange {exchange!r} and queue {queue!r} with key {key!r}"
        self._do(what, arguments, lambda: self._broker.bind(exchange, queue, key, arguments))

    def unbind(self, words: Sequence[str]) -> None:
        """Remove a binding."""
        exchange, queue, key = self._ends("unbind", words[:3])
        what = f"unbind exchange {exchange!r} and queue {queue!r} with key {key!r}"
        self._do(what, {}, lambda: self._broker.unbind(exchange, queue, key))

    def reload_acl(self) -> None:
        """Read the file of the access control again."""
        try:
            self._do("reload the ACL file", {}, self._broker.reloadAclFile)
        except RemoteError as error:
            if error.code == ErrorCode.UNKNOWN_OBJECT:
                raise ChangeError("ACL Module Not Loaded in Broker") from error
            raise

    def log(self, level: str) -> None:
        """Set what the broker logs."""
        self._do("set the log level", {"level": level}, lambda: self._broker.setLogLevel(level))

    def shutdown(self) -> None:
        """Stop the broker."""
        with contextlib.suppress(ConnectionError):  # a broker that ends does not always answer
            self._do("shut the broker down", {}, lambda: self._broker.call("shutdown"))

    def _create(self, kind: str, name: str, properties: Mapping[str, Any], *, strict: bool) -> None:
        if self._options.dry_run and kind in ("queue", "exchange") and self._broker.query(kind, name) is not None:
            raise ChangeError(f"{kind} {name!r} exists already")
        what = f"create {kind} {name!r}"
        self._do(what, properties, lambda: self._broker.create(kind, name, properties, strict))

    def _has_store(self) -> bool:
        """True if the broker keeps what is durable, as far as one can see.

        qpidd has an object for its store, and a data folder even without one; it may leave its name out of object ids.
        Other brokers have a data folder for their store only.
        """
        broker = self._broker.getBroker()
        if broker is None or self._broker.list("store"):
            return True
        is_qpidd = str(broker.content["_object_id"].get("_agent_name", QPIDD)).startswith(QPIDD)
        return bool(broker.dataDir) and not is_qpidd

    def _do(self, what: str, settings: Mapping[str, Any], change: Callable[[], object]) -> None:
        if not self._options.dry_run:
            change()
            return
        details = ", ".join(f"{name}={value!r}" for name, value in settings.items())
        print(f"would {what}{f': {details}' if details else ''}")

    def _ends(self, command: str, words: Sequence[str]) -> tuple[str, str, str]:
        if len(words) < 2:
            self._options.usage_error(f"{command} needs an exchange and a queue")
        return words[0], words[1], words[2] if len(words) > 2 else ""

    def _xquery(self) -> str:
        if not self._options.file:
            raise ChangeError("a binding to an XML exchange needs its query: -f FILE, or -f - for stdin")
        if self._options.file == "-":
            return sys.stdin.read()
        return Path(self._options.file).read_text(encoding="utf-8")
