"""Conversions from psutil's values to those of the model."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.hostagent.machine import CpuTimes, platform_field


def nanoseconds(seconds: float) -> int:
    """Seconds as nanoseconds, never negative. Rounded to microseconds, the precision of a time of day in a float."""
    return max(0, round(seconds * 1e6) * 1000)


def milliseconds(count: int) -> int:
    """Milliseconds as nanoseconds; never negative."""
    return max(0, count * 1_000_000)


def clip(text: str, limit: int = 255) -> str:
    """Text cut to at most `limit` bytes of UTF-8; characters that UTF-8 cannot encode become question marks."""
    return text.encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def percent(part: float, whole: float) -> float:
    """`part` as a percentage of `whole`, 0 to 100; 0 when `whole` is 0."""
    return min(100.0, max(0.0, 100.0 * part / whole)) if whole > 0 else 0.0


def system_seconds(times: CpuTimes) -> float:
    """Seconds in the kernel, including interrupts."""
    return times.system + float(platform_field(times, "irq")) + float(platform_field(times, "softirq"))


def user_seconds(times: CpuTimes) -> float:
    """Seconds in programs, including those of low priority. On Linux it already includes the time of guests."""
    return times.user + float(platform_field(times, "nice"))


def wait_seconds(times: CpuTimes) -> float:
    """Seconds idle while waiting for a disk."""
    return float(platform_field(times, "iowait"))


def stolen_seconds(times: CpuTimes) -> float:
    """Seconds that the hypervisor gave to other machines."""
    return float(platform_field(times, "steal"))


def cpu_time_parts(times: CpuTimes) -> Sequence[float]:
    """A processor's seconds, split into user, system, wait, stolen and idle."""
    return user_seconds(times), system_seconds(times), wait_seconds(times), stolen_seconds(times), times.idle
