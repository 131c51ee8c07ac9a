"""The page of classes takes as much work for each class, however many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast
from uuid import UUID

import attrs
import pytest
from support.growth import growth
from support.shelf import store_schema

from qmf.schema import ClassKey, ClassSchema
from qmf.web.consoles import WebConsole
from qmf.web.pages.live.catalogue import Catalogue
from qmf.web.pages.screens.classes_screen import ChosenClasses
from qmf.web.pages.views.page_urls import ClassesUrl

#: A little more than eight times the work of an eighth: sorting.
MOST = 9.0


class _Console:
    """Knows so many classes."""

    def __init__(self, count: int) -> None:
        one = next(item for item in store_schema().classes if item.name == "Shelf")
        self._schemas = {
            schema.key: schema
            for schema in (attrs.evolve(one, name=f"class{number}", hash=UUID(int=number)) for number in range(count))
        }

    def known_classes(self) -> list[ClassKey]:
        return list(self._schemas)

    def known_schema(self, key: ClassKey) -> ClassSchema:
        return self._schemas[key]


@pytest.mark.parametrize("url", [ClassesUrl(), ClassesUrl(sort="objects"), ClassesUrl(filter="class shelf")], ids=str)
def test_a_page_of_classes(url: ClassesUrl) -> None:
    def prepare(count: int) -> Callable[[], object]:
        console = cast("WebConsole", _Console(count))

        def work() -> int:
            catalogue = Catalogue(console)
            for key in console.known_classes():
                catalogue.add_user(key, "example.org:store:1")
            catalogue.forget("example.org:store:1")
            found = len(ChosenClasses(catalogue).of(url))
            assert found == count
            return found

        return work

    assert growth(prepare, 16) < MOST
