"""Fixtures of the tests of sessions: one over a lake."""

from __future__ import annotations

from shell.recorded import past, put, shop

__all__ = ["past", "put", "shop"]
