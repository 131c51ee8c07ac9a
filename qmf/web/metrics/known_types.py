"""Types of statistics that the wire leaves out: QMFv1 schemas, as qpidd sends them, have no counters, hilos and mmas.

For the classes of the project's own schemas, which are qpidd's, they are known.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import attrs

from qmf.schema import ClassSchema, Schema, Statistic, Style


@functools.cache
def _known_schemas() -> Mapping[tuple[str, str], ClassSchema]:
    # Imported here: only what serves metrics needs them.
    from qmf.models.acl.schema import SCHEMA as ACL
    from qmf.models.broker.schema import SCHEMA as BROKER
    from qmf.models.host.schema import SCHEMA as HOST

    schemas: tuple[Schema, ...] = (ACL, BROKER, HOST)
    return {(item.package, item.name.lower()): item for schema in schemas for item in schema.classes}


def with_known_types(schema: ClassSchema) -> ClassSchema:
    """A schema whose statistics have the types, units and descriptions of our own schema of that class, if any.

    A schema that has styles itself stays as it is; statistics that only the agent knows stay, too.
    """
    known = _known_schemas().get((schema.package, schema.name.lower()))
    if known is None or any(item.type.style is not Style.DIRECT for item in schema.statistics):
        return schema
    left: dict[str, Statistic] = {item.name: item for item in schema.statistics}
    found: list[Statistic] = []
    for item in known.statistics:
        names = {entry.v1_name for entry in item.entries}
        if names <= left.keys():
            found.append(item)
            for name in names:
                del left[name]
    return attrs.evolve(schema, statistics=(*found, *left.values()))
