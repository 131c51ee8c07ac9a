"""A lake with tills, and a session over it. Needs the extra `history`: without it, tests that use it are skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from qmf_shell.commands import standard
from qmf_shell.session.context import Context

from qmf.schema import Schema, to_xml

if TYPE_CHECKING:
    from pipeline.lakes import Shop

#: 2023-11-14 22:13:20 UTC
T = 1_700_000_000


def when(seconds: float) -> str:
    """The time so many seconds after the lake's first row, as a user may write it."""
    return datetime.fromtimestamp(T + seconds, UTC).isoformat().replace("+00:00", "Z")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A lake in which an agent was found at `T`."""
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    from pipeline.lakes import Shop
    from pipeline.shop import TILL

    from qmf.pipeline.lake.columns import ClassVersion

    shop = Shop(tmp_path)
    shop.agent(T, "added", agent="example.org:shop:1")
    shop.beat(T + 60, agent="example.org:shop:1")
    xml = to_xml(Schema(package=TILL.package, classes=(TILL,), events=()))
    shop.add_schema(ClassVersion.from_schema(TILL), xml)
    shop.commit()
    return shop


Put = Callable[..., None]


@pytest.fixture
def put(shop: Shop) -> Put:
    """Adds samples of a till: seconds after `T`, and sales."""

    def put(name: str, *samples: tuple[float, float], delete: float = 0, epoch: int = 1, **values: Any) -> None:
        shop.put(
            *((T + at, sales) for at, sales in samples),
            object=f"org.example.shop:till:{name}",
            agent="example.org:shop:1",
            properties=True,
            delete=delete and T + delete,
            epoch=epoch,
            name=name,
            **values,
        )

    return put


@pytest.fixture
def past(shop: Shop) -> Iterator[Context]:
    """A session without a broker."""
    from qmf_shell.session.history_backend import HistoryBackend
    from qmf_shell.session.lake_source import LakeSource, latest

    lake = LakeSource(shop.root)
    reader = lake.open()
    backend = HistoryBackend(reader, lambda: latest(reader))
    yield Context(backend, standard(), deletions=backend.deletions, lake=lake)
    lake.close()
