"""Every block of the documentation is run by a test, or says why not. CONTRIBUTING.md has the convention."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.page import LANGUAGES, ROOT, blocks, pages


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.stem)
def test_every_block_is_run(path: Path) -> None:
    found = blocks(path)
    assert [block.where for block in found if block.language not in LANGUAGES] == []
    assert [block.where for block in found if block.mark("not run") == ""] == []
    if any(block.language != "text" and block.mark("not run") is None for block in found):
        name = f"test_{path.stem.lower().replace('-', '_')}.py"
        module = (ROOT / "tests" / "docs" / name).read_text(encoding="utf-8")
        assert path.name in module, f"{name} does not run {path.name}"


def test_there_are_pages() -> None:
    assert len(pages()) > 10
