"""Tests of the web need the extra's libraries."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

#: What the tests of this folder import.
_NEEDED = ("fastapi", "httpx", "nicegui", "opentelemetry", "orjson", "prometheus_client", "uvicorn")

missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]

#: Without them nothing of this folder is collected; the report says why, see `tests/conftest.py`.
collect_ignore_glob = ["*/*.py", "test_*.py"] if missing else []


@pytest.fixture(autouse=True)
def _patient_scrapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first scrape waits for all classes, however busy the machine is."""
    monkeypatch.setattr("qmf.web.metrics.followed_classes.FIRST", 30.0)


@pytest.fixture(autouse=True)
def forgotten_applications() -> Iterator[None]:
    """FastAPI remembers the functions of thousands of routes, and by them the last eighty applications, which stay."""
    yield
    from fastapi.dependencies import models

    for cached in vars(models).values():
        if hasattr(cached, "cache_clear"):
            cached.cache_clear()
