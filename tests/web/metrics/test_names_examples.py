"""The rules and the dashboard of the examples: valid, and of metrics that there are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmf.models.broker.schema import SCHEMA
from qmf.models.federation.schema import SCHEMA as FEDERATION
from qmf.web.metrics.names import families_of

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
RULES = EXAMPLES / "prometheus-broker.rules.yml"
DASHBOARD = EXAMPLES / "grafana-broker.json"

#: Series of the broker's classes, and of the server itself.
CLASSES = (*SCHEMA.classes, *FEDERATION.classes)
SERIES = {family.series for item in CLASSES for family in families_of(item)} | {
    "qmf_web_connected",
    "qmf_agent_heard_timestamp_seconds",
}

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not installed (Debian: prometheus)"
)


def used(text: str) -> set[str]:
    """Names of series in expressions."""
    return set(re.findall(r"\b(?:org_apache_qpid|qmf)_\w+", text))


def expressions(found: object) -> Iterator[str]:
    """The queries of a dashboard."""
    if isinstance(found, dict):
        yield from (value for key, value in found.items() if key in ("expr", "definition"))
        for value in found.values():
            yield from expressions(value)
    elif isinstance(found, list):
        for value in found:
            yield from expressions(value)


def test_the_rules_are_of_series_that_there_are() -> None:
    names = used(RULES.read_text(encoding="utf-8"))
    assert len(names) > 5
    assert names <= SERIES


def test_routes_have_state_rate_lag_and_errors() -> None:
    wanted = {"up", "transfers_messages_total", "backlog_messages", "behind_seconds", "losses_total"}
    assert {f"qmf_federation_route_{name}" for name in wanted} <= SERIES


def test_the_dashboard_is_of_series_that_there_are() -> None:
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    names = {name for text in expressions(dashboard) for name in used(text)}
    assert len(names) > 10
    assert names <= SERIES
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)


@needs_promtool
def test_promtool_accepts_the_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", str(RULES)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "SUCCESS" in done.stdout


@needs_promtool
def test_promtool_accepts_the_queries_of_the_dashboard(tmp_path: Path) -> None:
    found = [
        text for text in expressions(json.loads(DASHBOARD.read_text(encoding="utf-8"))) if "label_values" not in text
    ]
    # Variables of Grafana are filled in by it.
    queries = [text.replace("$__rate_interval", "5m").replace("$agent", ".*").replace("$queue", ".*") for text in found]
    rules = {"groups": [{"name": "g", "rules": [{"record": f"r{n}", "expr": text} for n, text in enumerate(queries)]}]}
    path = tmp_path / "rules.yml"
    path.write_text(json.dumps(rules), encoding="utf-8")  # JSON is YAML
    done = subprocess.run(["promtool", "check", "rules", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
