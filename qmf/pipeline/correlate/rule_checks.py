"""Checks files of rules: what is wrong in themselves, and what doesn't fit the classes of a lake."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from qmf.pipeline.correlate.lake_rows import LakeRows
from qmf.pipeline.correlate.plan import read_plan
from qmf.pipeline.correlate.rule_file import load_rules, read_text
from qmf.pipeline.correlate.rule_table import RuleError
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.signal_reader import SignalReader
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.notifying.config_file import config_errors


def check_rules(file: str, lake: str | None = None) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Check a file of rules.

    Args:
        file: with the rules.
        lake: whose classes the rules must fit; None checks the file alone.

    Returns:
        the rules, and a text for each class that the lake doesn't have.

    Raises:
        RuleError: a line for each error, also in the tables of notifications.
        LakeError: the lake can't be read.
    """
    rules = _load(file)
    if lake is None:
        return rules, ()
    opened = DeltaLake(lake)
    plan = read_plan(rules, opened.classes())
    with closing(LakeRows(opened, 0)) as rows:
        SignalReader(plan, 0, rows.schemas(SignalReader.paths(plan))).close()
    return rules, plan.missing


def _load(file: str) -> tuple[Rule, ...]:
    """The rules of a file, whose tables of notifications are checked as well."""
    wrong: list[str] = []
    rules: tuple[Rule, ...] = ()
    try:
        rules = load_rules(file)
    except RuleError as error:
        wrong += str(error).splitlines()
    found = [error.at(file) for error in config_errors(read_text(file), folder=Path(file).parent)]
    # Both readers report wrong syntax.
    wrong += [text for text in found if text not in wrong]
    if wrong:
        raise RuleError("\n".join(wrong))
    return rules
