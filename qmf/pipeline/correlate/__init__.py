"""Correlation: rules that look for patterns in a lake, the table of alerts, and an agent that tells the bus.

From the rule outwards:

* `rules` and `rulefile`: what a rule is, and reading it from TOML;
* `messages` and `machines`: what rules do with signals, pure and without Spark;
* `signals` and `evaluate`: rows of the lake as signals, and the machines over all of them, on Spark;
* `times`, `table` and `jobs`: as a batch, or step by step as the lake grows, each step exactly once;
* `ledger`, `telling` and `agent`: alerts as events and objects on the bus.
"""

from __future__ import annotations

from qmf.pipeline.correlate.rule_file import RuleError, load_rules, parse_rules
from qmf.pipeline.correlate.rules import Rule, RuleKind

__all__ = ["Rule", "RuleError", "RuleKind", "load_rules", "parse_rules"]
