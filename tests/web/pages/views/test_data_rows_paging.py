"""Pages of agents and classes, and their addresses."""

from __future__ import annotations

import pytest

from qmf.web.pages.views.data_rows import PageOf, page_of
from qmf.web.pages.views.page_urls import AgentsUrl, ClassesUrl


@pytest.mark.parametrize(
    ("count", "number", "expected"),
    [
        (0, 1, PageOf([], 1, 1)),
        (3, 1, PageOf([0, 1, 2], 1, 1)),
        (4, 2, PageOf([3], 2, 2)),
        (4, 9, PageOf([3], 2, 2)),
        (4, -1, PageOf([0, 1, 2], 1, 2)),
    ],
)
def test_pages_of_three(count: int, number: int, expected: PageOf[int]) -> None:
    assert page_of(list(range(count)), number, 3) == expected


@pytest.mark.parametrize(
    "url",
    [AgentsUrl(), AgentsUrl("till", 3), ClassesUrl(), ClassesUrl("shop", "objects", True, 2)],
)
def test_addresses_are_read_as_they_were_written(url: AgentsUrl | ClassesUrl) -> None:
    query = dict(item.split("=") for item in str(url).partition("?")[2].split("&") if item)
    assert type(url).parse(query) == url


@pytest.mark.parametrize("page", ["0", "-1", "x", "", "99999999999"])
def test_a_page_that_is_no_number_is_the_first(page: str) -> None:
    assert AgentsUrl.parse({"page": page}).page == 1
    assert ClassesUrl.parse({"page": page}).page == 1
