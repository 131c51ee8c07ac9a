"""Checks files of rules: what is wrong in themselves, and what doesn't fit the classes of a lake."""

from __future__ import annotations

from contextlib import closing

from qmf.pipeline.correlate.lake_rows import LakeRows
from qmf.pipeline.correlate.plan import read_plan
from qmf.pipeline.correlate.rule_file import load_rules
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.signal_reader import SignalReader
from qmf.pipeline.lake.delta_lake import DeltaLake


def check_rules(file: str, lake: str | None = None) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Check a file of rules.

    Args:
        file: with the rules.
        lake: whose classes the rules must fit; None checks the file alone.

    Returns:
        the rules, and a text for each class that the lake doesn't have.

    Raises:
        RuleError: a line for each error.
        LakeError: the lake can't be read.
    """
    rules = load_rules(file)
    if lake is None:
        return rules, ()
    opened = DeltaLake(lake)
    plan = read_plan(rules, opened.classes())
    with closing(LakeRows(opened, 0)) as rows:
        SignalReader(plan, 0, rows.schemas(SignalReader.paths(plan))).close()
    return rules, plan.missing
