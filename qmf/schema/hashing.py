"""Hashes of classes and events, as Apache's `qmf-gen` computes them (QMF2.md 5.4).

They cover the XML text of names and values, so a change of anything but comments makes a new version. The package is
not part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from uuid import UUID

from lxml import etree

from qmf.schema.groups import Groups


def class_hash(element: etree._Element, groups: Groups) -> UUID:
    """Hash of a `class`: its element, then the digests of the groups that it uses, in order."""
    return UUID(bytes=_with_groups(element, groups, {}))


def event_hash(element: etree._Element, arguments: Iterable[etree._Element]) -> UUID:
    """Hash of an `event`: its element, then the digests of its `arg` elements in the order of `args`."""
    digest = _md5(_text(element))
    for argument in arguments:
        digest.update(_md5(_text(argument)).digest())
    return UUID(bytes=digest.digest())


def _with_groups(element: etree._Element, groups: Groups, known: dict[etree._Element, bytes]) -> bytes:
    """Digest of a class or group. Groups of groups, which Apache's generator does not have, count likewise.

    Only for schemas without cycles.
    """
    digest = _md5(_text(element))
    for _use, group in groups.uses(element):
        if group is None:
            continue
        if group not in known:
            known[group] = _with_groups(group, groups, known)
        digest.update(known[group])
    return digest.digest()


def _text(element: etree._Element) -> bytes:
    parts: list[str] = []
    for part in element.iter("*"):
        parts.append(part.tag)
        for name, value in part.attrib.items():
            parts += (str(name), str(value))
    return "".join(parts).encode()


def _md5(data: bytes) -> hashlib._Hash:
    return hashlib.md5(data, usedforsecurity=False)
