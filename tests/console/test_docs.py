"""The code of docs/console.md runs, and prints what stands below it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pages import blocks, kinds, run

from qmf.broker import EmbeddedBroker
from qmf.hostagent import EmbeddedHostAgent
from qmf.hostagent.settings import Settings

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "console.md"


def test_the_page_has_code_of_both_apis() -> None:
    code = "".join(block.code for block in blocks(PAGE))
    assert "Session(" in code
    assert "async with Client(" in code
    assert kinds(PAGE) == {"console", "python", "output"}


def test_the_code_of_the_page_prints_its_output() -> None:
    broker = EmbeddedBroker()
    broker.start()
    try:
        with EmbeddedHostAgent(broker.url, settings=Settings(interval=1.0, instance="tutorial")):
            wrong = run(PAGE, broker.url, {"__name__": "tutorial"})
    finally:
        broker.close()
    assert not wrong, "\n".join(wrong)
