"""The code of docs/messaging.md runs, and prints what stands below it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.pages import kinds, run

from qmf.broker import EmbeddedBroker

pytestmark = pytest.mark.slow

PAGE = Path(__file__).resolve().parents[2] / "docs" / "messaging.md"


def test_the_page() -> None:
    with EmbeddedBroker() as broker:
        wrong = run(PAGE, broker.url, {"__name__": "tutorial"})
    assert not wrong, "\n".join(wrong)
    assert kinds(PAGE) == {"console", "python", "output", "text"}
