"""When runs had agents: the same as one heartbeat after the other, whatever file each of them is in."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pipeline.lakes import SECOND, Shop

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.heartbeats import joined_spans, shared_spans, spans_of_file
from qmf.pipeline.lake.runs import SILENCE_NS, RecordedRuns, RunPresence

#: Heartbeats as (run, agent, second); those of a list are in one file.
Beats = list[tuple[str, str, int]]


def one_by_one(beats: Beats) -> list[RunPresence]:
    """The presences of the agents that several runs had."""
    times: dict[tuple[str, str], list[int]] = defaultdict(list)
    for run, agent, second in beats:
        times[agent, run].append(second * SECOND)
    found: list[RunPresence] = []
    for (agent, run), own in sorted(times.items()):
        if len({other for name, other in times if name == agent}) < 2:
            continue
        for at in sorted(own):
            last = found[-1] if found else None
            if last is None or (last.agent, last.run) != (agent, run) or at - last.last_ns > SILENCE_NS:
                found.append(RunPresence(run, agent, at, at))
            else:
                found[-1] = RunPresence(run, agent, last.first_ns, at)
    return found


BEATS = st.lists(
    st.tuples(
        st.sampled_from(("one", "two")), st.sampled_from("ab"), st.integers(0, 60).map(lambda at: 1000 + 17 * at)
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(BEATS, min_size=1, max_size=3))
def test_spans_are_those_of_the_heartbeats(files: list[Beats]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for number, beats in enumerate(files):
            for run in sorted({run for run, _agent, _second in beats}):
                shop = Shop(Path(folder), run=run, name=f"{run}{number}")
                for agent in "ab":
                    times = [second for own, name, second in beats if (own, name) == (run, agent)]
                    if times:
                        shop.beat(*times, agent=agent)
        table = DeltaLake(folder).kind_table(RowKind.HEARTBEATS)
        parts = [spans_of_file(table, file, SILENCE_NS) for file in table.snapshot().files]
        expected = one_by_one([beat for beats in files for beat in beats])
        assert [RunPresence(*span) for span in shared_spans(joined_spans(parts))] == expected


@pytest.mark.slow
def test_agents_that_one_run_had_do_not_leave_the_database(tmp_path: Path) -> None:
    for run in ("one", "two"):
        shop = Shop(tmp_path, run=run, name=run)
        for agent in (run, f"{run} again", "both"):
            shop.beat(1000, 1010, agent=agent)
    found = RecordedRuns(DeltaLake(str(tmp_path))).presences()
    assert [(item.run, item.agent) for item in found] == [("one", "both"), ("two", "both")]
