"""Pages of REST take as much work for each object, however many there are; the first page no more than its agents."""

from __future__ import annotations

import base64
import json

import pytest
from support.growth import instructions_of
from support.shelf import store_agent
from support.web import called, memory_application

from qmf.bus import MemoryExchange

pytestmark = pytest.mark.slow

#: A little more than eight times the work of an eighth: sorting.
MOST = 9.0
SMALL, FACTOR = 16, 8
OBJECTS = "/api/v1/objects?class=shelf&limit=10"


async def work(path: str, count: int, *, second: bool = False) -> int:
    """Instructions of a further request with so many objects; agent and server are this process."""
    exchange = MemoryExchange()
    async with store_agent(exchange, shelves=count), called(memory_application(exchange, None)) as http:
        answer = await http.get(path)
        assert answer.status_code == 200, answer.text
        assert (len(answer.json()["objects"]), answer.json()["total"]) == (10, count)
        return await instructions_of(http.get(answer.json()["next"] if second else path))


@pytest.mark.parametrize("query", ["", "&sort=-sold"], ids=["names", "sorted"])
async def test_of_the_first_page_agents_send_no_more(query: str) -> None:
    few, many = await work(OBJECTS + query, SMALL), await work(OBJECTS + query, SMALL * FACTOR)
    assert many / few < 3


async def test_an_order_is_that_of_the_agents_from_the_first_request_on() -> None:
    exchange = MemoryExchange()
    async with store_agent(exchange, shelves=30), called(memory_application(exchange, None)) as http:
        page = (await http.get(f"{OBJECTS}&sort=-sold&fields=name")).json()
        assert [item["values"]["name"] for item in page["objects"]] == [f"a/{at}" for at in range(29, 19, -1)]
        # An answer that is kept would have a number in the cursor.
        number, *_ = json.loads(base64.urlsafe_b64decode(page["next"].rpartition("cursor=")[2] + "=="))
        assert (number, page["total"]) == (0, 30)


async def test_the_second_page_asks_for_all_objects_once() -> None:
    few, many = await work(OBJECTS, SMALL, second=True), await work(OBJECTS, SMALL * FACTOR, second=True)
    assert many / few < MOST
