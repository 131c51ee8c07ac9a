"""`qmf/broker/operations` is the only way to the nodes: no other module changes them, or takes a right to them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import qmf.broker
from qmf.broker.nodes.contents import Contents
from qmf.broker.nodes.delivery import QueueDelivery
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.topics import Topics
from qmf.broker.operations import grants, publisher

ROOT = Path(qmf.broker.__file__).parent

#: What changes nodes, or publishes to them, or receives from them.
CHANGES = {
    NodeRegistry: {
        "create",
        "declare_queue",
        "delete",
        "delete_queue",
        "bind",
        "unbind",
        "redirect",
        "end_redirection",
        "publish",
        "publish_all",
        "send_to_alternate",
        "move",
        "reroute",
    },
    Topics: {"create_topic", "delete_topic", "create_policy", "delete_policy", "create_by_policy"},
    Queue: {"enqueue", "enqueue_all", "recover"},
    Contents: {"add_all", "pass_through", "purge"},
    QueueDelivery: {"add_consumer", "add_browser"},
    Exchange: {"bind", "unbind"},
}
NAMES = set[str]().union(*CHANGES.values())

#: Rights, which are made by operations alone.
GRANTS = {grants.ConsumeGrant.__name__, grants.BrowseGrant.__name__, grants.Publication.__name__}
GRANTS |= {publisher.Publisher.__name__}

#: Attributes of the registry that operations alone set; `server.py` does so before there is anybody to ask.
SET = {"timestamps"}

#: What has methods of the same names, by the name by which it is called, and that asks the policy itself.
ASKING = {"operations", "forwarding", "administration", "publisher", "publication"}
#: What has such methods and is no node: parts of the store, and what a session of MQTT has sent.
OTHERS = {"batches", "pages", "sent"}

#: Restoring what the store has is no operation: nobody asks for it.
EXEMPT = {"store/definitions.py"}


def modules() -> Iterator[str]:
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(("nodes/", "operations/")) and name not in EXEMPT:
            yield name


def last_name(node: ast.expr) -> str:
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.lstrip("_")


def passing_by(source: str) -> list[str]:
    """Lines that pass by the operations."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            asking = last_name(node.value) in ASKING | OTHERS
            changes = node.attr in NAMES and isinstance(node.ctx, ast.Load)
            sets = node.attr in SET and isinstance(node.ctx, ast.Store)
            if (changes or sets) and not asking:
                found.append(f"{node.lineno}: {ast.unparse(node)}")
        elif isinstance(node, ast.Call) and last_name(node.func) in GRANTS:
            found.append(f"{node.lineno}: {ast.unparse(node.func)}")
    return found


@pytest.mark.parametrize("module", sorted(modules()))
def test_nodes_are_changed_by_operations_alone(module: str) -> None:
    found = passing_by((ROOT / module).read_text(encoding="utf-8"))
    if module == "server.py":
        found = [line for line in found if not line.endswith("_registry.timestamps")]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "self._registry.create(name, declaration, client)",
        "registry.topics.create_topic(name, {})",
        "queue.add_consumer(self)",
        "begin = self.queue.add_browser",
        "self._registry.publish_all(node, messages)",
        "exchange.bind(queue, spec)",
        "self._registry.timestamps = True",
        "ConsumeGrant(queue).begin(self)",
        "grants.Publication(registry, node, message).publish()",
    ],
)
def test_passing_by_is_noticed(line: str) -> None:
    assert passing_by(line)


def test_asking_is_not_passing_by() -> None:
    assert passing_by("self._operations.create(principal, name, declaration); publication.publish()") == []


@pytest.mark.parametrize("owner", CHANGES)
def test_the_names_are_those_of_methods(owner: type) -> None:
    assert [name for name in sorted(CHANGES[owner]) if not callable(getattr(owner, name, None))] == []
