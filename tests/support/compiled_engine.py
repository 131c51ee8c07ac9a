"""The engine of AMQP with its compiled functions, where they are installed, and without."""

from __future__ import annotations

import pytest

from qmf.bus.engine.native import native
from qmf.bus.frames.walker import compiled_walker


@pytest.fixture(autouse=True, params=["compiled", "pure"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether it is with them: each test of the module runs both ways."""
    if request.param == "pure":
        monkeypatch.setattr("qmf.bus.engine.engine.native", lambda: None)
        monkeypatch.setattr("qmf.bus.frames.walker.compiled_walker", lambda: None)
    elif native() is None or compiled_walker() is None:
        pytest.skip("the engine's compiled functions are not installed (scripts/c_extensions.py)")
    return bool(request.param == "compiled")
