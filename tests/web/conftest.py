"""Tests of the web need the extra's libraries."""

from __future__ import annotations

import importlib.util

#: What the tests of this folder import.
_NEEDED = ("fastapi", "httpx", "nicegui", "opentelemetry", "orjson", "prometheus_client", "uvicorn")

missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]

#: Without them nothing of this folder is collected; the report says why, see `tests/conftest.py`.
collect_ignore_glob = ["*/*.py", "test_*.py"] if missing else []
