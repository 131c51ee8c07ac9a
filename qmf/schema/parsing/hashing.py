"""Hashes of classes and events, as Apache's `qmf-gen` computes them (QMF2.md 5.4).

They cover names and values in the XML, so every change except of comments makes a new version. The package is not
covered.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from uuid import UUID

from lxml import etree

from qmf.schema.parsing.groups import GroupExpander


def class_hash(element: etree._Element, groups: GroupExpander) -> UUID:
    """Hash of a `class`: its element, then the digests of the groups that it uses, in order."""
    return UUID(bytes=_with_groups(element, groups, {}))


def event_hash(element: etree._Element, arguments: Iterable[etree._Element]) -> UUID:
    """Hash of an `event`: its element, then the digests of its `arg` elements in the order of `args`."""
    digest = _md5(_text(element))
    for argument in arguments:
        digest.update(_md5(_text(argument)).digest())
    return UUID(bytes=digest.digest())


def _with_groups(element: etree._Element, groups: GroupExpander, known: dict[etree._Element, bytes]) -> bytes:
    """Digest of a class or group. Groups within groups, which Apache's generator does not have, are digested alike.

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
    members: list[str] = []
    for member in element.iter("*"):
        members.append(member.tag)
        for name, value in member.attrib.items():
            members += (str(name), str(value))
    return "".join(members).encode()


def _md5(data: bytes) -> hashlib._Hash:
    return hashlib.md5(data, usedforsecurity=False)
