"""Invented inputs for what reads bytes and texts of strangers: valid ones that are changed at random places.

``QMF_FUZZ_INPUTS`` is the number of inputs for each reader in ``make soak``, such as 10000000; `make test` tries few.
Many inputs must not need more memory than a tenth of them did: what is invalid leaves nothing behind.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from random import Random

import psutil

#: Inputs for each reader in `make test`, and in `make soak`.
FEW, MANY = 300, int(os.environ.get("QMF_FUZZ_INPUTS", "200000"))

#: Inputs from which on memory is looked at, and the bytes by which it may grow from the first tenth to the end.
_MEMORY_FROM, _GROWTH = 100_000, 16 * 2**20

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
    """Read inputs, with the input in the error where one raises what it must not. Prints time and memory of many.

    Args:
        read: raises nothing for any input.
        valid: that are changed.
        count: of inputs.

    Returns:
        how many were read.

    Raises:
        AssertionError: an input raised something, or memory grew.
    """
    begin, tenth, memory = time.process_time(), count // 10, 0
    done = 0
    for data in inputs(valid, count):
        try:
            read(data)
        except Exception as error:
            raise AssertionError(f"{type(error).__name__} for {data!r}: {error}") from error
        done += 1
        if done == tenth:
            memory = _resident_bytes()
    if count >= _MEMORY_FROM:
        grown = _resident_bytes() - memory
        print(f"{done:,} inputs, {time.process_time() - begin:,.0f} s, {memory / 2**20:,.1f} {grown / 2**20:+,.1f} MiB")
        assert grown <= _GROWTH, f"memory grew by {grown:,} bytes after {tenth:,} of {count:,} inputs"
    return done


def _resident_bytes() -> int:
    return int(psutil.Process().memory_info().rss)
