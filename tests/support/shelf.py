"""A small schema with every kind of member, and an agent of it, for tests of the web."""

from __future__ import annotations

from qmf.bus import MemoryExchange
from qmf.schema import Schema, parse_schema
from qmf.testing import FakeAgent

XML = b"""<schema package="org.example.store">
  <class name="Store" desc="A store">
    <property name="name" type="sstr" access="RC" index="y" desc="Its name"/>
  </class>
  <class name="Shelf" desc="A shelf of a store">
    <property name="name" type="sstr" access="RC" index="y" desc="Its name"/>
    <property name="storeRef" type="objId" access="RC" references="Store" parentRef="y"/>
    <property name="limit" type="uint64" access="RW" unit="item" min="1" desc="Items that fit"/>
    <property name="built" type="absTime" access="RO" desc="When it was built"/>
    <property name="label" type="lstr" access="RW" optional="y" maxlen="20"/>
    <statistic name="items" type="hilo32" unit="item" desc="Items on it"/>
    <statistic name="sold" type="count64" unit="item" desc="Items sold"/>
    <statistic name="weight" type="uint64" unit="octet" desc="Load"/>
    <statistic name="open" type="bool" desc="It can be reached"/>
    <statistic name="waiting" type="mmaTime" unit="nanosecond" desc="Time that people wait"/>
    <method name="add" desc="Put items on it">
      <arg name="count" type="uint32" dir="I" min="1" desc="How many"/>
      <arg name="at" type="absTime" dir="I" default="1"/>
      <arg name="total" type="uint64" dir="O" unit="item"/>
    </method>
    <method name="clear" desc="Take all items away">
      <arg name="filter" type="map" dir="I" desc="Which; empty for all"/>
      <arg name="done" type="map" dir="O"/>
    </method>
  </class>
  <event name="sale" sev="notice" args="shelf, count" desc="Somebody bought something"/>
  <event name="broken" sev="error" args="shelf" desc="It broke"/>
  <eventArguments>
    <arg name="shelf" type="sstr"/>
    <arg name="count" type="uint64"/>
  </eventArguments>
</schema>"""


def store_schema() -> Schema:
    """The schema."""
    return parse_schema(XML, "store.xml")


def store_agent(
    exchange: MemoryExchange | str, *, name: str = "example.org:store:1", shelves: int = 3, interval: float = 10.0
) -> FakeAgent:
    """An agent with a store and shelves ``a/0``, ``a/1``, ...; not started yet."""
    fake = FakeAgent(exchange, store_schema(), name=name, interval=interval)
    store = fake.add("Store", name="main")
    for number in range(shelves):
        shelf = fake.add(
            "Shelf",
            name=f"a/{number}",
            storeRef=store,
            limit=2**63 + number,
            built=1_700_000_000_000_000_001,
            weight=number,
        )
        shelf.items.set(number)
        shelf.sold.set(10 * number)
    return fake
