"""What proton writes, on its way to the peer: message formats are put in, and the handles of links are learnt."""

from __future__ import annotations

from qmf.bus.engine.link import Link
from qmf.bus.frames.performatives import read_attach, set_message_format
from qmf.bus.frames.walker import StopKind, walker


class SentFrames:
    """The frames of one connection to its peer.

    Attributes:
        walker: address of that of frames, for the compiled functions; 0 while they have to leave it alone.
    """

    __slots__ = ("_held", "_unattached", "_walker", "walker")

    def __init__(self) -> None:
        self._walker = walker(outgoing=True)
        self.walker = self._walker.address
        #: The beginning of a frame, of which the rest is to come.
        self._held = b""
        #: Links on which we send, by name, of which our attach frame is not written yet.
        self._unattached: dict[str, list[Link]] = {}

    def expect(self, link: Link) -> None:
        """A link will be attached."""
        if link.is_sender:
            self._unattached.setdefault(link.name, []).append(link)

    def forget(self, link: Link) -> None:
        """A link is gone, attached or not."""
        if link.is_sender and link.handle is None:
            self._unattached[link.name].remove(link)
            self._tidy(link.name)

    def pass_on(self, data: bytes) -> bytes:
        """What is to be sent of these bytes and those that were held back; the end of it may be held back again."""
        if self._held:
            data, self._held = self._held + data, b""
            self.walker = self._walker.address
        changed: bytearray | None = None
        offset = 0
        while (stop := self._walker.next_stop(data, offset)) is not None:
            if stop.kind is StopKind.INCOMPLETE:
                self._held, self.walker = data[stop.start :], 0
                return data[: stop.start] if changed is None else bytes(changed[: stop.start])
            if stop.kind is StopKind.ATTACH:
                self._on_attach(data[stop.start : stop.end])
            else:
                changed = bytearray(data) if changed is None else changed
                set_message_format(changed, stop.start + stop.value)
            offset = stop.end
        return data if changed is None else bytes(changed)

    def _on_attach(self, frame: bytes) -> None:
        attach = read_attach(frame)
        if attach is not None and attach.is_sender and (links := self._unattached.get(attach.name)):
            links.pop(0).handle = attach.handle
            self._tidy(attach.name)

    def _tidy(self, name: str) -> None:
        if not self._unattached[name]:
            del self._unattached[name]
