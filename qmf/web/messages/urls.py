"""The URLs of this interface, and the headers that carry them. Clients are to follow these, and to build none."""

from __future__ import annotations

from urllib.parse import quote

import attrs
from starlette.requests import Request

from qmf.web.messages.destinations import Destination, DestinationKind
from qmf.web.messages.pull_protocol import LinkKind, NextStep

#: The parts of paths that name protocols.
AUTO_ACK, ACKNOWLEDGED = "auto-ack", "acknowledged"


@attrs.frozen
class Urls:
    """The URLs of a destination.

    Attributes:
        root: of the server, with a slash at its end.
        destination: the queue or topic.
    """

    root: str
    destination: Destination

    @classmethod
    def of(cls, request: Request, destination: Destination) -> Urls:
        """Under the name by which the client addresses this server."""
        return cls(str(request.base_url), destination)

    @property
    def base(self) -> str:
        """Of the destination."""
        return self.root + self.destination.path

    @property
    def factory(self) -> str:
        """Name of the resource that creates pull consumers."""
        return "pull-consumers" if self.destination.kind is DestinationKind.QUEUE else "pull-subscriptions"

    @property
    def push_factory(self) -> str:
        """Name of the resource that registers push consumers."""
        return "push-consumers" if self.destination.kind is DestinationKind.QUEUE else "push-subscriptions"

    def destination_links(self) -> dict[str, str]:
        """Headers of the destination itself."""
        return {
            "msg-create": f"{self.base}/create",
            "msg-create-with-id": f"{self.base}/create/{{id}}",
            **self.factory_link(),
            f"msg-{self.push_factory}": f"{self.base}/{self.push_factory}",
        }

    def factory_link(self) -> dict[str, str]:
        """The header that names where pull consumers are created."""
        return {f"msg-{self.factory}": f"{self.base}/{self.factory}"}

    def consumer(self, id: str, *, auto_ack: bool) -> str:
        """Of a pull consumer."""
        return f"{self.base}/{self.factory}/{AUTO_ACK if auto_ack else ACKNOWLEDGED}/{quote(id)}"

    def step(self, id: str, step: NextStep) -> dict[str, str]:
        """The headers that tell a client its next step, and where its consumer is."""
        consumer = self.consumer(id, auto_ack=step.kind is LinkKind.CONSUME_NEXT)
        slash = "/" if step.kind is LinkKind.ACKNOWLEDGEMENT else "-"
        return {f"msg-{step.kind.value}": f"{consumer}/{step.kind.value}{slash}{step.number}", "msg-consumer": consumer}
