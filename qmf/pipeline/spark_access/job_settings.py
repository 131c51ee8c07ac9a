"""Settings of Spark for jobs, whose work is done by functions in Python: Java only moves their rows."""

from __future__ import annotations

_ALWAYS = {
    # Plans that change while they run, and code that Java compiles for each stage, cost more than they bring.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.python.daemon.module": "qmf.pipeline.runners.job_daemon",
}

#: Java that compiles quickly, not well: most of the processor time of a job over a small lake was spent on compiling.
_QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def job_settings(*, small: bool) -> dict[str, str]:
    """The settings of a session for one job.

    Args:
        small: the job takes seconds.
    """
    if not small:
        return dict(_ALWAYS)
    return {**_ALWAYS, **{f"spark.{where}.extraJavaOptions": _QUICK_JAVA for where in ("driver", "executor")}}
