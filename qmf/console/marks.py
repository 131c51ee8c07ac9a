"""Tells what agents and consoles create on a broker from what applications create: see `qmf.bus.marks`."""

from __future__ import annotations

from qmf.bus.marks import is_own_connection, is_own_name

__all__ = ["is_own_connection", "is_own_name"]
