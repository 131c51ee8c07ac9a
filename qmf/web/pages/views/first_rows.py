"""The first rows of a table while its objects are being fetched: agents are asked for no more than these.

To follow a class of 100,000 objects takes seconds until all are there; its first page takes a fraction of one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.console.aio import OrderKey, RemoteObject
from qmf.console.aio.first_objects import AGENTS_AT_FIRST
from qmf.errors import QmfError
from qmf.views.internal import BROKER_PACKAGE, SESSION
from qmf.web.pages.live.shared_state import SharedState
from qmf.web.pages.views.page_columns import PageColumn, columns_of
from qmf.web.pages.views.page_urls import ObjectsUrl

#: Seconds to wait for them; then a page is sent without, and they are shown when they come.
WAIT = 0.8
#: Seconds after which nobody waits for them any more.
LONGEST = 20.0
#: How many times as many are asked for, if some of the first ones are not shown.
MORE = 16


@attrs.frozen(eq=False)
class FirstRows:
    """The objects of a page, in order.

    Attributes:
        url: the address of the page.
        objects: those that it shows; none if they could not be had.
        total: how many objects there are; None if that is not known.
    """

    url: ObjectsUrl
    objects: Sequence[RemoteObject] = ()
    total: int | None = None


class FirstPages:
    """Asks for the first rows of one page after the other, of the table of a class."""

    def __init__(self, site: SharedState, is_own: Callable[[RemoteObject], bool]) -> None:
        """Prepare; nothing is asked for yet.

        Args:
            is_own: whether an object is about what an agent or a console created for itself.
        """
        self._site = site
        self._is_own = is_own
        self._url: ObjectsUrl | None = None
        self._task: asyncio.Task[FirstRows] | None = None

    @property
    def task(self) -> asyncio.Task[FirstRows] | None:
        """What asks; None before the first question."""
        return self._task

    async def get(self, url: ObjectsUrl) -> FirstRows:
        """The objects of a page; none while agents have not answered: only the first call waits a short time."""
        if self._task is None or self._url != url:
            self.close()
            self._url = url
            self._task = asyncio.get_running_loop().create_task(self._ask(url))
            await asyncio.wait([self._task], timeout=WAIT)
        return self._task.result() if self._task.done() and not self._task.cancelled() else FirstRows(url)

    def close(self) -> None:
        """Wait for no answer any more."""
        if self._task is not None:
            self._task.cancel()

    async def _ask(self, url: ObjectsUrl) -> FirstRows:
        columns = columns_of(self._site.catalogue.versions(url.package, url.name))
        return await ask_first_rows(self._site, url, columns, self._is_own)


async def ask_first_rows(
    site: SharedState, url: ObjectsUrl, columns: Mapping[str, PageColumn], is_own: Callable[[RemoteObject], bool]
) -> FirstRows:
    """Ask for the objects that a page shows.

    Args:
        url: of the page.
        columns: all columns of its class, by name.
        is_own: whether an object is about what an agent or a console created for itself.
    """
    column = columns.get(url.sort)
    order = None if url.sort and column is None else _order(column, url.descending)
    # Which sessions are own ones is known only with all connections.
    if url.filter.strip() or order is None or (url.package, url.name) == (BROKER_PACKAGE, SESSION):
        return FirstRows(url)
    in_turn = column is None and not url.agent and len(site.agents) > AGENTS_AT_FIRST
    try:
        async with asyncio.timeout(LONGEST):
            return await _ask(site, url, order, is_own, in_turn=in_turn)
    except (QmfError, TimeoutError):
        return FirstRows(url)  # the page says of the agents what there is to say when it follows them


async def _ask(
    site: SharedState,
    url: ObjectsUrl,
    order: tuple[OrderKey, ...],
    is_own: Callable[[RemoteObject], bool],
    *,
    in_turn: bool,
) -> FirstRows:
    """Ask for the first objects, and for more if too few of them are shown."""
    end = url.page * url.size
    limit, agent = end, url.agent or None
    while True:
        found = await site.client.objects(
            url.name, package=url.package, agent=agent, limit=limit, order=order, in_turn=in_turn
        )
        # A console that shows a part of the objects gives more than were asked for, in no order.
        first = sorted(found, key=lambda obj: _place(order, obj)) if len(found) > limit else found.items
        shown = [obj for obj in first if url.own or not is_own(obj)]
        if len(shown) >= end or len(found) < limit or limit > end:
            return FirstRows(url, shown[end - url.size : end], found.total)
        limit *= MORE


def _order(column: PageColumn | None, descending: bool) -> tuple[OrderKey, ...] | None:
    """The order of a table within an agent; None if agents do not have it."""
    name = OrderKey(OrderKey.OBJECT_NAME, descending, natural=True, any_case=True)
    if column is None or column.name == "index":
        return (name,)
    field = column.field
    if column.rate or column.name != field.name or field.member is None:
        return None
    if not (field.is_number or field.is_time or field.type.is_string):
        return None
    return OrderKey(field.name, descending, natural=True, any_case=True), name


def _place(order: Sequence[OrderKey], obj: RemoteObject) -> list[object]:
    values = obj.data.values
    name = obj.object_id.object_name
    return [key.place(name if key.name == OrderKey.OBJECT_NAME else values.get(key.name)) for key in order]
