"""Agents of which a reader may read a part; everything else has ``secret`` in its name."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import attrs
from support.shelf import store_schema

from qmf.bus import MemoryExchange
from qmf.schema import parse_schema
from qmf.testing import FakeAgent

#: Rules by which bob reads the shelves ``a/...`` and sales, and adds to one of them; ann reads and calls everything.
RULES = """group readers bob@QPID
acl allow ann@QPID access
acl deny readers access query name=secret*
acl allow readers access query schemapackage=org.example.store schemaclass=shelf name=a/*
acl allow readers access query schemapackage=org.example.store schemaclass=sale
acl allow readers access method name=add schemaclass=shelf object=a/1
acl allow readers access method name=clear schemaclass=shelf object=secret/0
acl allow readers consume queue name=bob.*
acl allow readers publish exchange name=amq.default routingkey=bob.#
acl allow readers bind exchange name=bob.*
acl deny all all
"""

_VAULT = b"""<schema package="org.secret.vault">
  <class name="Vault" desc="secret"><property name="name" type="sstr" access="RC" index="y"/></class>
  <class name="Shelf" desc="secret">
    <property name="name" type="sstr" access="RC" index="y"/>
    <property name="secretLimit" type="uint32" access="RO"/>
  </class>
  <event name="sale" sev="notice" args="shelf" desc="secret"/>
  <eventArguments><arg name="shelf" type="sstr"/></eventArguments>
</schema>"""


@attrs.frozen
class SecretStore:
    """The agents.

    Attributes:
        store: of which a part may be read.
        vault: of which nothing may be read.
    """

    store: FakeAgent
    vault: FakeAgent

    def sell(self) -> None:
        """Raise an event that may be read, and three that may not."""
        self.store.raise_event("broken", shelf="a/1 secret")
        self.store.raise_event("sale", shelf="secret/0", count=1)
        self.vault.raise_event("sale", shelf="secret")
        self.store.raise_event("sale", shelf="a/1", count=7)


@contextlib.asynccontextmanager
async def secret_store(exchange: MemoryExchange) -> AsyncIterator[SecretStore]:
    """Agents that are started."""
    store = FakeAgent(exchange, store_schema(), name="example.org:store:1", interval=0.1)
    main = store.add("Store", name="secret main")
    for name in ("a/0", "a/1", "a/2", "secret/0", "secret/1"):
        shelf: Any = store.add("Shelf", name=name, storeRef=main, limit=5, built=1)
        shelf.sold.set(10)
    vault = FakeAgent(exchange, parse_schema(_VAULT, "vault.xml"), name="secret.org:vault:1", interval=0.1)
    vault.add("Vault", name="secret")
    vault.add("Shelf", name="a/secret", secretLimit=3)
    store.on("Shelf", "add", lambda _, **_inputs: {"total": 7})
    store.on("Shelf", "clear", lambda _, **_inputs: {"done": {}})
    async with store, vault:
        yield SecretStore(store, vault)
