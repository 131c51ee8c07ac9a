"""Fixtures for the tests of qmf.testing: its own."""

from __future__ import annotations

from qmf.testing.fixtures import qmf_clock, qmf_exchange, qmf_recorder

__all__ = ["qmf_clock", "qmf_exchange", "qmf_recorder"]
