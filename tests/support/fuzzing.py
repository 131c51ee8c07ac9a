"""Invented inputs for what reads bytes and texts of strangers: valid ones that are changed at random places.

``QMF_FUZZ_INPUTS`` is the number of inputs for each reader in ``make soak``, such as 10000000; `make test` tries few.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from random import Random

#: Inputs for each reader in `make test`, and in `make soak`.
FEW, MANY = 300, int(os.environ.get("QMF_FUZZ_INPUTS", "200000"))

#: Bytes that mean something to some reader.
_STRANGE = (
    b"\0",
    b"\xff",
    b"\xc3\xa9",
    b"=",
    b",",
    b"\\\n",
    b"\n",
    b"#",
    b" ",
    b"${user}",
    b"*",
    b"9" * 40,
    b"n=",
    b"\x01",
)


def changed(chance: Random, valid: bytes) -> bytes:
    """Bytes that differ from valid ones in a few places; sometimes they are valid still."""
    data = bytearray(valid)
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(5):
            case 0:
                data[at : at + chance.randrange(1, 9)] = b""
            case 1:
                data[at:at] = chance.choice(_STRANGE)
            case 2:
                data[at:at] = chance.randbytes(chance.randrange(1, 6))
            case 3 if data:
                data[at % len(data)] ^= 1 << chance.randrange(8)
            case _:
                piece = data[at : at + chance.randrange(1, 30)]
                data[at:at] = piece * chance.randrange(1, 4)
    return bytes(data)


def inputs(valid: Sequence[bytes], count: int, seed: int = 0) -> Iterator[bytes]:
    """So many inputs, the same for each seed."""
    chance = Random(seed)
    for _ in range(count):
        yield changed(chance, chance.choice(valid))


def try_all(read: Callable[[bytes], object], valid: Sequence[bytes], count: int) -> int:
    """Read inputs, with the input in the error where one raises what it must not.

    Args:
        read: raises nothing for any input.
        valid: that are changed.
        count: of inputs.

    Returns:
        how many were read.
    """
    done = 0
    for data in inputs(valid, count):
        try:
            read(data)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} for {data!r}: {error}") from error
        done += 1
    return done
