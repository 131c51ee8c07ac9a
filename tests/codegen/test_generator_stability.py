"""A small change of a schema is a small change of what is generated, and nothing else changes it."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest
from qmf_codegen import Format, generate
from support.schemas import SHIPPED

NEW = '    <property name="tint" type="uint8" access="RW" optional="y" unit="shade" desc="How the sign is painted"/>\n'


def texts(path: Path, format: Format = Format.PYTHON) -> dict[str, str]:
    return {file.path.name: file.text for file in generate([path], format=format)}


def changed(old: str, new: str) -> tuple[list[str], list[str]]:
    """The lines removed and added."""
    lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm=""))[2:]
    return [line[1:] for line in lines if line[0] == "-"], [line[1:] for line in lines if line[0] == "+"]


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """The broker's schema with one more property in one of its classes."""
    text = (SHIPPED / "broker.xml").read_text(encoding="utf-8")
    mark = 'access="RC" index="y" desc="Name of the link"/>\n'
    assert text.count(mark) == 1
    path = tmp_path / "broker.xml"
    path.write_text(text.replace(mark, mark + NEW), encoding="utf-8")
    return path


def test_a_new_property_changes_the_lines_about_it(edited: Path) -> None:
    old, new = texts(SHIPPED / "broker.xml"), texts(edited)
    assert old.keys() == new.keys()
    differences = {name: changed(old[name], new[name]) for name in old}

    assert differences["__init__.py"] == ([], [])

    removed, added = differences["schema.py"]
    assert [line.split('"')[0] for line in removed] == ["    hash=UUID("]
    assert [line for line in added if "hash=" not in line] == [
        "        Property(",
        '            name="tint",',
        '            type=TYPES["uint8"],',
        "            access=Access.RW,",
        '            unit="shade",',
        '            desc="How the sign is painted",',
        "            optional=True,",
        "        ),",
    ]

    field = "    tint = Attribute[int | None]()"
    removed, added = differences["agent.py"]
    assert removed == []
    assert added == [field, "        tint: int | None = None,", "            tint=tint,"]

    removed, added = differences["console.py"]
    assert removed == []
    assert added[0] == field
    assert "\n".join(added[1:]).strip() == (
        "async def set(self, *, tint: int | Unset | None = UNSET, timeout: float | None = None) -> None:\n"
        '        """Set properties, all or none; those that are not given stay unchanged."""\n'
        '        await self._qmf_set(timeout, {"tint": tint})'
    )


@pytest.mark.parametrize("format", [Format.XML, Format.MARKDOWN], ids=lambda item: item.value)
def test_a_new_property_is_one_line_of_a_document(format: Format, edited: Path) -> None:
    ((old,), (new,)) = (texts(path, format).values() for path in (SHIPPED / "broker.xml", edited))
    removed, added = changed(old, new)
    assert removed == []
    assert len(added) == 1
    assert "tint" in added[0]


@pytest.mark.parametrize("format", Format, ids=lambda item: item.value)
def test_what_makes_no_difference_changes_nothing(format: Format, tmp_path: Path) -> None:
    """Comments and layout, and the directory."""
    text = (SHIPPED / "acl.xml").read_text(encoding="utf-8")
    path = tmp_path / "acl.xml"
    path.write_text(text.replace("\n  <class", "\n\n<!-- new -->\n<class").replace("  ", " "), encoding="utf-8")
    assert texts(path, format) == texts(SHIPPED / "acl.xml", format)
    assert str(tmp_path) not in "".join(texts(path, format).values())
