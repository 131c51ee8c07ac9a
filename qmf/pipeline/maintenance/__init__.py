"""Work on all tables of a lake, table by table or file by file, wherever it runs: checks, and combining small files."""

from __future__ import annotations
