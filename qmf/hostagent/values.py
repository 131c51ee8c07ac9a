"""Small conversions from psutil's values to those of the model."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.hostagent.source import CpuTimes, extra


def nanoseconds(seconds: float) -> int:
    """Seconds as nanoseconds, never negative. Rounded to microseconds: a time of day in a float is no more precise."""
    return max(0, round(seconds * 1e6) * 1000)


def milliseconds(count: int) -> int:
    """Milliseconds as nanoseconds; never negative."""
    return max(0, count * 1_000_000)


def clip(text: str, limit: int = 255) -> str:
    """Text that fits into `limit` bytes of UTF-8; bytes that were no UTF-8 become question marks."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def percent(part: float, whole: float) -> float:
    """Share of `part` in `whole`, 0 to 100; 0 of nothing."""
    return min(100.0, max(0.0, 100.0 * part / whole)) if whole > 0 else 0.0


def system_seconds(times: CpuTimes) -> float:
    """Seconds in the kernel, interrupts included."""
    return times.system + float(extra(times, "irq")) + float(extra(times, "softirq"))


def user_seconds(times: CpuTimes) -> float:
    """Seconds in programs, those of low priority included. Linux counts guests' time in here already."""
    return times.user + float(extra(times, "nice"))


def wait_seconds(times: CpuTimes) -> float:
    """Seconds idle while a disk was waited for."""
    return float(extra(times, "iowait"))


def stolen_seconds(times: CpuTimes) -> float:
    """Seconds that the hypervisor gave to others."""
    return float(extra(times, "steal"))


def parts(times: CpuTimes) -> Sequence[float]:
    """The five parts of a processor's time: user, system, wait, stolen, idle."""
    return user_seconds(times), system_seconds(times), wait_seconds(times), stolen_seconds(times), times.idle
