"""Which objects and events pages leave out, unless asked for everything: see `qmf.web.own_objects`."""

from __future__ import annotations

from qmf.console.aio import ObjectId, RemoteEvent, RemoteObject
from qmf.console.marks import is_own_connection, is_own_name
from qmf.web import own_objects
from qmf.web.own_objects import BROKER_PACKAGE
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
    """True for an event about what an agent or a console created or deleted.

    So is the end of a subscription without a name: qpidd reports that of each AMQP 1.0 link as one of nobody to
    nothing.
    """
    key = event.class_key
    if key is None or key.package != BROKER_PACKAGE:
        return False
    values = event.arguments
    if key.name == "unsubscribe" and not any(values.values()):
        return True
    names = (values.get("qName"), values.get("dest"))
    return any(isinstance(name, str) and is_own_name(name) for name in names) or is_own_connection(
        values.get("properties")
    )
