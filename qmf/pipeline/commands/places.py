"""Where each job runs: the table of docs/pipeline.md, of which each cell has a test."""

from __future__ import annotations

import attrs


@attrs.frozen
class JobPlaces:
    """Where a job runs; all of them run in the process of the command as well.

    Attributes:
        name: of the subcommand.
        spark_stream: its streams run on Spark, too, as its batches do; None for jobs without streams.
        divided: what the executors do.
    """

    name: str
    spark_stream: bool | None
    divided: str


#: The jobs.
JOBS: tuple[JobPlaces, ...] = (
    JobPlaces("rollup", True, "days of classes, or several small classes, become rows, written there"),
    JobPlaces("correlate", True, "files become signals; rules and subjects become alerts, written there"),
    JobPlaces("audit", True, "files become parts; events, agents and objects become tables, written there"),
    JobPlaces("history", True, "files become parts; agents and objects become tables, written there"),
    JobPlaces("report", None, "files become parts, classes become values over time"),
    JobPlaces("optimize", None, "tables are read, written and committed"),
    JobPlaces("check", None, "logs of tables and files are read; rows are counted by run"),
)


def places_table() -> list[str]:
    """The lines of the table in docs/pipeline.md."""
    lines = [
        "| job | in the process | on Spark | `--stream` in the process | `--stream` on Spark | what executors do |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for job in JOBS:
        streams = "- | -" if job.spark_stream is None else f"yes | {'yes' if job.spark_stream else 'no'}"
        lines.append(f"| `{job.name}` | yes | yes | {streams} | {job.divided} |")
    return lines
