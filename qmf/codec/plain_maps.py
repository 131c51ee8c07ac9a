"""The compiled functions for plain maps and lists of AMQP 0-10 (`plain_maps.c`), where they are installed.

They read and write what consists of numbers, text, binary, maps and lists, as most bodies do, and leave all else to the
functions in Python: other types, and whatever is not valid, so that errors are made there alone.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from typing import Any

from qmf.codec.limits import MAX_DEPTH
from qmf.codec.type_codes import AMQP010, INT64
from qmf.codec.types import Timestamp

#: Set in the environment to do without.
NO_NATIVE = "QMF_NO_NATIVE"

#: Of the module that fits; see `VERSION` there.
_VERSION = 2


#: The bytes before the correlation id of answers, its size, the bytes behind it, and who sends them.
AnswerHead = tuple[bytes, int, bytes, str | None]
#: Correlation id as a number, outputs, and who has sent them.
Answer = tuple[int, dict[str, object], str | None]


class PlainMaps:
    """The functions of the compiled module.

    Attributes:
        decode: makes a dict or list of bytes that are one map or list: called with the bytes, whether binary that is
            UTF-8 becomes text, and whether it is a map. Returns None for what is not plain, or not valid.
        encode: makes bytes of a dict or list, called with it and the number of maps and lists around it without the
            outermost. Returns None for what is not plain, or cannot be encoded.
        encode_call: makes a message around a correlation id and a dict of such values; see `calls.c`.
        read_answers: takes messages apart that have all but these in common with earlier ones; see there.
    """

    def __init__(self, module: Any) -> None:
        self.decode: Callable[[bytes, bool, bool], Any] = module.decode
        self.encode: Callable[[object, int], bytes | None] = module.encode
        self.encode_call: Callable[[tuple[bytes, ...], str, object], bytes | None] = module.encode_call
        self.read_answers: Callable[[list[bytes], list[AnswerHead], str], list[Answer | bytes]] = module.read_answers
        codes = [(row.python, row.code) for row in AMQP010.values() if row.format in tuple("bBhHiIqQ")]
        numbers = [(kind, code) for kind, code in codes if kind not in (int, bool, str, bytes, dict, list)]
        module.bind(MAX_DEPTH, [*numbers, (Timestamp, INT64)])


@functools.cache
def plain_maps() -> PlainMaps | None:
    """The compiled module; None where it is not installed, or not wanted."""
    if os.environ.get(NO_NATIVE):
        return None
    try:
        module = importlib.import_module("qmf.codec._plain_maps")
    except ImportError:
        return None
    return PlainMaps(module) if module.VERSION == _VERSION else None
