"""Flows that ask for the state of a session or a link, by the peer or by us, and answers; see `qmf/bus/frames`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import proton
from cproton import lib

from qmf.bus.engine.link import Link
from qmf.bus.frames.performatives import asking_flow, link_flow


class FlowAnswers:
    """Makes the answers of one engine.

    Attributes:
        ready: output of the engine that was taken from proton before it is asked for.
        owed: links on which we send, that the peer has asked for the state of, and that are not granted yet.
    """

    def __init__(self) -> None:
        self.ready: list[bytes] = []
        self.owed: dict[Link, None] = {}

    @property
    def waits(self) -> bool:
        """True if an answer has not been written yet."""
        return bool(self.ready or self.owed)

    def answer(self, session: Any, link: Link | None, limit: int, take_output: Callable[[], bytes]) -> None:
        """The peer has asked for the state of a session, or of a link: a flow with it is the next output.

        Args:
            session: as C object.
            link: or None.
            limit: of a link on which we send: the peer's delivery count and credit in sum, modulo 2**32.
            take_output: takes from proton what it has for the peer now; empty for nothing.
        """
        if link is not None and not link.raw.state & proton.Endpoint.LOCAL_ACTIVE:
            if link.is_sender and not link.detached:
                self.owed[link] = None  # it is not granted yet
            return
        self._drain(take_output)  # the state is that after all that was sent
        # No change, but proton sends a flow after it: of a link whose credit changes, or else of the session.
        lib.pn_session_set_incoming_capacity(session, lib.pn_session_get_incoming_capacity(session))
        if link is not None and not link.is_sender:
            (lib.pn_link_drain if lib.pn_link_get_drain(link.impl) else lib.pn_link_flow)(link.impl, 0)
        before = len(self.ready)
        self._drain(take_output)
        if link is None or not link.is_sender or link.handle is None or len(self.ready) != before + 1:
            return
        credit = lib.pn_link_credit(link.impl) + lib.pn_link_queued(link.impl)
        self.ready[before] = link_flow(
            self.ready[before],
            handle=link.handle,
            delivery_count=limit - credit,
            credit=max(0, credit),
            available=None if link.count_available is None else link.count_available(),
            drain=bool(lib.pn_link_get_drain(link.impl)),
        )

    def ask(self, link: Link, take_output: Callable[[], bytes]) -> bool:
        """Ask the peer for the state of a link on which we receive: how many messages wait for credit.

        Args:
            link: that is granted and not ended.
            take_output: see `answer`.

        Returns:
            False if it cannot be asked now.
        """
        self._drain(take_output)
        session = link.session_impl
        lib.pn_session_set_incoming_capacity(session, lib.pn_session_get_incoming_capacity(session))
        lib.pn_link_flow(link.impl, 0)
        before = len(self.ready)
        self._drain(take_output)
        asking = asking_flow(self.ready[before]) if len(self.ready) > before else None
        if asking is None:
            return False
        self.ready[before] = asking
        return True

    def answer_owed(self, take_output: Callable[[], bytes]) -> None:
        """Answer the peer's questions about links that were not granted then, and are now."""
        self.owed = {link: None for link in self.owed if not link.detached}
        granted = [link for link in self.owed if link.raw.state & proton.Endpoint.LOCAL_ACTIVE]
        # Nothing was sent before: our delivery count is 0.
        limits = {link: lib.pn_link_credit(link.impl) + lib.pn_link_queued(link.impl) for link in granted}
        for link, limit in limits.items():
            del self.owed[link]
            self.answer(link.session_impl, link, limit, take_output)

    def forget(self) -> None:
        """Answer nothing, since the connection is gone."""
        self.ready.clear()
        self.owed.clear()

    def _drain(self, take_output: Callable[[], bytes]) -> None:
        while data := take_output():
            self.ready.append(data)
