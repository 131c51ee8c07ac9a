"""Names, epochs, and the file that counts starts."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from qmf.agent.agent_identity import AgentIdentity
from qmf.agent.agent_start import make_identity
from qmf.agent.options import AgentOptions
from qmf.errors import CallerError
from qmf.testing import ManualClock

NOW = 1_700_000_000_500_000_000


def identity(*, now: int = NOW, **options: Any) -> AgentIdentity:
    names = {"vendor": "example.org", "product": "stock", "clock": ManualClock(now)}
    return make_identity(AgentOptions(**{**names, **options}))


def test_without_state_the_epoch_is_the_time_and_the_instance_new() -> None:
    first, second = identity(), identity(now=NOW + 10**9)
    assert (first.epoch, second.epoch) == (1_700_000_000, 1_700_000_001)
    assert first.instance != second.instance
    assert first.name == f"example.org:stock:{first.instance}"
    assert first.direct_subject != second.direct_subject


def test_the_time_wraps_at_32_bits_and_is_never_0() -> None:
    assert identity(now=(1 << 32) * 10**9).epoch == 1
    assert identity(now=((1 << 32) + 5) * 10**9).epoch == 5


def test_starts_are_counted_in_the_state_directory(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "state"
    starts = [identity(state_dir=folder) for _ in range(3)]
    assert [item.epoch for item in starts] == [1, 2, 3]
    assert len({item.name for item in starts}) == 1
    assert {path.name for path in folder.iterdir()} == {"example.org,stock.json", "example.org,stock.lock"}


def test_agents_with_instances_are_counted_apart(tmp_path: Path) -> None:
    names = ["a", "b", "a/../b", "a"]
    assert [identity(state_dir=tmp_path, instance=name).epoch for name in names] == [1, 1, 1, 2]
    assert all(path.parent == tmp_path for path in tmp_path.iterdir())


def test_a_given_epoch_wins(tmp_path: Path) -> None:
    assert identity(epoch=77).epoch == 77
    assert identity(epoch=77, state_dir=tmp_path).epoch == 77


@pytest.mark.parametrize("content", ["", "{", "[]", '{"instance": 1, "epoch": 2}', '{"instance": "x", "epoch": -1}'])
def test_a_damaged_file_does_not_stop_the_program(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "example.org,stock.json").write_text(content)
    with caplog.at_level(logging.WARNING):
        assert identity(state_dir=tmp_path).epoch == 1_700_000_001
    assert "is damaged" in caplog.text
    assert identity(state_dir=tmp_path).epoch == 1_700_000_002


def test_the_count_wraps_to_1(tmp_path: Path) -> None:
    (tmp_path / "example.org,stock.json").write_text('{"instance": "x", "epoch": 4294967295}')
    assert identity(state_dir=tmp_path).epoch == 1


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(CallerError, match=r"example.org,stock.json: File exists"):
        identity(state_dir=file)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"vendor": ""}, "the vendor of an agent must not be empty or contain ':', not ''"),
        ({"product": "a:b"}, "the product of an agent must not be empty or contain ':', not 'a:b'"),
        ({"instance": ""}, "the instance of an agent must not be empty"),
        ({"epoch": 0}, "the epoch of an agent must be 1 to 4294967295, not 0"),
        ({"epoch": 1 << 32}, "the epoch of an agent must be 1 to 4294967295, not 4294967296"),
        ({"instance": "x" * 230}, "the name of an agent must have at most 235 bytes: example.org:stock:" + "x" * 230),
    ],
)
def test_what_cannot_be_a_name_is_refused(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(CallerError) as caught:
        identity(**changes)
    assert str(caught.value) == text


def test_instances_may_hold_colons() -> None:
    assert identity(instance="a:b").name == "example.org:stock:a:b"


def test_info() -> None:
    me = identity(instance="i", epoch=4, interval=2.5, attributes={"site": "lab"})
    info = me.info(99, 42)
    assert (info.name, info.vendor, info.product, info.instance) == ("example.org:stock:i", "example.org", "stock", "i")
    assert (info.epoch, info.heartbeat_interval, info.timestamp, info.schema_updated) == (4, 2.5, 99, 42)
    assert (info.capability, info.direct_subject, info.attributes) == (1, me.direct_subject, {"site": "lab"})
