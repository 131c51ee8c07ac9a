"""`qmf-broker --check-store` and `--salvage-store`: reading a data folder instead of running a broker on it."""

from __future__ import annotations

from pathlib import Path

from qmf.broker.store.checking import check_store, salvage_store

#: Exit code when a store is damaged.
DAMAGED = 1


def run_store_command(data_dir: Path, salvage_to: Path | None) -> int:
    """Check a store, or save from it what can be read, and print what was found.

    Args:
        salvage_to: an empty or new folder for what can be saved; None to check only.

    Returns:
        exit code.

    Raises:
        StoreError: the folder has no store, is in use, or nothing of it can be read.
    """
    if salvage_to is None:
        report = check_store(data_dir)
        print("\n".join(report.lines()))
        return DAMAGED if report.faults else 0
    report = salvage_store(data_dir, salvage_to)
    print("\n".join(report.lines()))
    count = sum(count for count, _ in report.messages.values())
    size = sum(size for _, size in report.messages.values())
    print(f"Saved to {salvage_to}: {report.definitions:,} definitions, {count:,} messages, {size:,} bytes")
    return 0
