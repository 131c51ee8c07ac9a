"""Correlation: rules that detect patterns in a lake, the table of alerts, and an agent that publishes alerts.

From the rule outwards:

* `rules`, `rule_file`, `rule_readers`: rules as values, and reading them from TOML;
* `message_templates`, `detectors`: what each kind of rule does with its signals, pure and without Spark;
* `plan`, `expressions`, `signals`, `signal_reader`: rows of the lake as signals, computed by DuckDB;
* `evaluation`: runs the detectors over all signals;
* `lake_rows`, `alert_table`: arrival and time of rows, and the table of alerts;
* `batch_input`, `batch`: the job over a whole lake, a map and a reduce wherever it runs;
* `rule_stream`, `stream`: step by step as the lake grows, in the process, each step exactly once;
* `bucket_step`, `task_stream`: the same by the tasks of a runner;
* `reporter`: alerts as events and objects on the bus.
"""

from __future__ import annotations

from qmf.pipeline.correlate.rule_file import load_rules, parse_rules
from qmf.pipeline.correlate.rules import Rule, RuleError, RuleKind

__all__ = ["Rule", "RuleError", "RuleKind", "load_rules", "parse_rules"]
