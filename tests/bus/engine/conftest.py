"""The engine is tested with its compiled functions, where they are installed, and without."""

from __future__ import annotations

from support.compiled_engine import compiled

__all__ = ["compiled"]
