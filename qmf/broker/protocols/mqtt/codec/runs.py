"""The compiled functions for runs of packets (`runs.c`), where they are installed.

A run is publications that differ from one another in their packet ids and payloads alone, or acknowledgements of QoS 1:
nearly all that a connection carries. They are read and written in one call. What is not that simple, incomplete or not
allowed is left to the functions in Python, so that errors are made there alone.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

import attrs

#: Set in the environment to do without.
NO_NATIVE = "QMF_NO_NATIVE"

#: Of the module that fits; see `VERSION` there.
_VERSION = 1


@attrs.frozen
class PublicationForm:
    """What the publications of a run have in common.

    Attributes:
        first: their first byte: type and flags.
        topic: encoded, with its length.
        properties: encoded, with their length; empty in 3.1.1.
    """

    first: int
    topic: bytes
    properties: bytes


@attrs.define
class PublicationRun:
    """Publications that were read together. It is never changed; not frozen, since that takes longer to create.

    Attributes:
        messages: their stored forms.
        packet_ids: of them; empty with QoS 0.
    """

    messages: list[bytes]
    packet_ids: list[int]


@attrs.define
class AcknowledgementRun:
    """PUBACK that were read together, all of them without a reason code. It is never changed, as `PublicationRun`.

    Attributes:
        packet_ids: of them.
    """

    packet_ids: list[int]


class Runs:
    """The functions of the compiled module; they are described there."""

    def __init__(self, module: Any) -> None:
        self.read_publications: Callable[
            [bytes, int, int, bytes, bytes, bytes, int, int], tuple[list[bytes], list[int], int]
        ] = module.read_publications
        self.read_acknowledgements: Callable[[bytes, int], tuple[list[int], int]] = module.read_acknowledgements
        self.write_acknowledgements: Callable[[list[int]], bytes] = module.write_acknowledgements
        self.write_publications: Callable[
            [list[Any], int, bytes, int, bytes, bytes, list[int] | None, int, int], tuple[bytes, int]
        ] = module.write_publications


@functools.cache
def compiled_runs() -> Runs | None:
    """The compiled module; None where it is not installed, or not wanted."""
    if os.environ.get(NO_NATIVE):
        return None
    try:
        module = importlib.import_module("qmf.broker.protocols.mqtt.codec._runs")
    except ImportError:
        return None
    return Runs(module) if module.VERSION == _VERSION else None
