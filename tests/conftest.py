"""What the tests of all packages share."""

from __future__ import annotations

import gc
import importlib.util
import os
import signal
import sys
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from support.examples import IN_SOAK, IN_TESTS

# A machine that is busy is no reason to fail. `make soak` looks at many more examples.
_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile("tests", deadline=None, max_examples=IN_TESTS, suppress_health_check=_SLOW)
settings.register_profile("soak", deadline=None, max_examples=IN_SOAK, suppress_health_check=_SLOW)
settings.load_profile("tests")

# Tests start many programs: compiled once, modules are loaded several times as fast.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell that runs the suite in the background has Ctrl-C ignored, and programs that tests start would inherit that:
# their own Ctrl-C would do nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Processes of ``-n auto``: two for each processor, since most tests wait for something most of the time."""
    return 2 * (os.cpu_count() or 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    """See `support.scheduling`."""
    from support.scheduling import Scheduling

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes millions of objects that stay: looking among them for garbage takes a quarter of its time.

    They are left out later, too: a test that collects garbage looks at its own. Tests make and drop whole brokers and
    applications, so that the interpreter's own thresholds would look among what stays for a sixth of all the time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(10_000)
        gc.enable()


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """See `support.reporting`."""
    if not hasattr(item.config, "workerinput"):
        return None
    from support.reporting import run_and_report

    run_and_report(item, nextitem)
    return True


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """A test leaves Ctrl-C as it was: others send it to themselves."""
    if (handler := signal.getsignal(signal.SIGINT)) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pytest.fail(f"{item.nodeid} left {handler} as the handler of SIGINT")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Where several processes run tests, long ones come first."""
    if hasattr(config, "workerinput"):
        from support.scheduling import order

        items.sort(key=lambda item: order(item.nodeid))


def pytest_report_header() -> list[str]:
    """Which peers the tests run with, named by environment variables, and whether the pipeline's are in."""
    qpidd = os.environ.get("QMF_TEST_QPIDD")
    foreign = [f"qpidd at {qpidd}" if qpidd else "no qpidd (QMF_TEST_QPIDD)"]
    foreign.append(
        "libqmf2 on both of its client protocols"
        if qpidd and os.environ.get("QMF_TEST_LIBQMF2")
        else "no libqmf2 (QMF_TEST_LIBQMF2)"
    )
    spark = all(importlib.util.find_spec(name) for name in ("pyarrow", "pyspark"))
    return [
        "pipeline: tested on Spark"
        if spark
        else "pipeline: left out, its extra is not installed: pip install '.[dev]'",
        "web: tested"
        if importlib.util.find_spec("fastapi") and importlib.util.find_spec("nicegui")
        else "web: left out, its extra is not installed: pip install '.[dev]'",
        f"peers: embedded broker, our agents, captured messages; {'; '.join(foreign)}",
    ]
