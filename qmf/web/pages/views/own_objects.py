"""Which objects and events pages leave out, unless asked for everything: see `qmf.web.own_objects`."""

from __future__ import annotations

from qmf.console.aio import ObjectId, RemoteEvent, RemoteObject
from qmf.views import internal
from qmf.views.internal import BROKER_PACKAGE
from qmf.web import own_objects
from qmf.web.pages.live.site import Site


class OwnObjects(own_objects.OwnObjects):
    """Tells own objects from others."""

    def __init__(self, site: Site) -> None:
        """`site` knows the connections that sessions refer to, if they are followed."""

        def find(connection: ObjectId) -> RemoteObject | None:
            followed = site.followed_class(BROKER_PACKAGE, "connection")
            return None if followed is None else followed.get(connection)

        super().__init__(find)


def is_own_event(event: RemoteEvent) -> bool:
    """True for an event about what an agent or a console created or deleted."""
    key = event.class_key
    return key is not None and internal.is_own_event(key.package, key.name, event.arguments)
