"""What operators look for in a queue is on a terminal of 80 columns: depth, consumers, in, out."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.modes.executor import execute
from qmf_shell.session.context import Context
from shell.fakes import ALPHA, SCHEMAS, SECOND, FakeBackend, make_output
from shell.line_runner import view_of
from shell.looked import Looked

from qmf.models.broker.schema import QUEUE as WHOLE
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView

QUEUE = attrs.evolve(WHOLE, name="queue")


def queue(name: str, depth: int, updated: int = SECOND) -> ObjectView:
    key = ObjectKey(f"org.apache.qpid.broker:queue:{name}", ALPHA)
    values = {item.name: depth for item in QUEUE.statistics} | {"msgDepth": depth + 123_456, "consumerCount": 7}
    return ObjectView(ObjectIdentity(key, QUEUE.key, name), QUEUE, {"name": name, **values}, updated=updated)


@pytest.fixture
def queues(context: Context, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> Context:
    monkeypatch.setitem(SCHEMAS, QUEUE.key, QUEUE)
    backend.keys = [*backend.keys, QUEUE.key]
    backend.records = [queue("mq1,/,orders.europe.incoming.retries", 1), queue("quotes", 2)]
    return context


def heads(lines: list[str]) -> list[str]:
    """The words of headings, without those of rates beside totals."""
    return [word for word in " ".join(lines).split() if word != "/s"]


def test_in_a_list(queues: Context) -> None:
    output = make_output(width=80)
    execute("list queue", queues, output.screen)
    assert output.lines[1].split() == ["consumer", "msgTotal", "msgTotal"]
    assert output.lines[2].split() == ["ID", "Index", "msgDepth", "Count", "Enqueues", "Dequeues"]
    assert "mq1,/,orders" in output.lines[-2]


def test_on_a_screen(queues: Context, backend: FakeBackend) -> None:
    backend.records[0] = queue("orders.europe.incoming", 1)
    looked = Looked(queues, "watch queue")
    assert heads(looked.lines(80)[1:3]) == [
        *("msgTotal", "msgTotal"),
        *("ID", "Index", "msgDepth", "consumerCount", "Enqueues", "Dequeues"),
    ]
    looked.navigator.rates()
    assert "/s" not in " ".join(looked.lines(80)[1:3])


def test_those_with_most(queues: Context, backend: FakeBackend) -> None:
    looked = Looked(queues, "top queue by msgTotalEnqueues")
    shown = [item.key for item in looked.navigator.page.model.shown_columns if item.name]
    assert shown[:5] == ["msgTotalEnqueues", "msgTotalEnqueues/s", "msgDepth", "consumerCount", "msgTotalDequeues"]
    result = view_of(queues, "top queue by msgTotalEnqueues").frame()
    assert [column.title for column in result.columns][2:] == [  # type: ignore[union-attr]
        *("msgTotalEnqueues", "msgDepth", "consumerCount", "msgTotalDequeues"),
    ]


def test_columns_are_in_the_order_that_the_user_names(queues: Context) -> None:
    looked = Looked(queues, "watch queue columns consumerCount, msgDepth, msgTotalDequeues")
    shown = [item.key for item in looked.navigator.page.model.shown_columns if item.name]
    assert shown == ["consumerCount", "msgDepth", "msgTotalDequeues", "msgTotalDequeues/s"]
    looked.navigator.rates()
    looked.navigator.rates()
    shown = [item.key for item in looked.navigator.page.model.shown_columns if item.name]
    assert shown == ["consumerCount", "msgDepth", "msgTotalDequeues/s"]
