"""Calls: user, operation, target and result, from the events that are raised about them.

Requests and responses go between one console and one agent; no third party receives them. These events exist:

- qpidd raises an event for each operation on the broker, by a management call or otherwise, with user and address;
- its access control raises one for each request that a rule with `log` allowed or denied;
- agents of this project raise `methodCalled` for each method call and each change of properties by a console, if they
  are configured to (`qmf.agent.CallAudit`).

Calls that raise no event are not in the table.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from qmf.pipeline.audit.call_events import ACL, AUDIT, CALL_EVENTS, METHOD_CALLED, CallEvent
from qmf.pipeline.audit.schemas import CALLS, conform

OK, FAILED = "ok", "failed"


def calls(events: DataFrame) -> DataFrame:
    """The calls that events describe.

    Args:
        events: the table, or some rows of it; a batch or a stream.

    Returns:
        `CALLS`: a row for each event that describes a call.
    """
    kind = F.concat_ws(":", "package", "class")
    cases = {f"{item.package}:{item.name}": _foreign(item) for item in CALL_EVENTS}
    cases[f"{AUDIT}:{METHOD_CALLED}"] = _own()
    found = F.lit(None)
    for name, call in cases.items():
        found = F.when(kind == name, call).otherwise(found)
    with_call = events.withColumn("call", found).where(F.col("call").isNotNull())
    own = {"event_id", "time", "time_ns", "agent"}
    inside = (F.col(f"call.{name}").alias(name) for name in CALLS.fieldNames() if name not in {*own, "source"})
    return conform(with_call.select(*sorted(own), *inside, kind.alias("source")), CALLS)


def _foreign(event: CallEvent) -> Column:
    failed = F.lit(event.failed)
    # The event of an access rule names the operation, e.g. "create queue".
    is_action = event.operation == "action"
    operation = F.concat_ws(" ", _argument("action"), _argument("objectType")) if is_action else F.lit(event.operation)
    return _call(
        user=_argument(event.user),
        origin=_argument(event.origin),
        operation=operation,
        target=_argument(event.target),
        arguments=F.col("arguments"),
        failed=failed,
        text=_argument(event.text) if event.text else F.when(failed, F.lit("denied" if event.package == ACL else None)),
        results=_argument(event.results),
    )


def _own() -> Column:
    code = _argument("code").cast("long")
    return _call(
        user=_argument("user"),
        origin=_argument("replyTo"),
        operation=_argument("method"),
        target=_argument("object"),
        arguments=_argument("arguments"),
        failed=code != 0,
        code=code,
        text=_argument("text"),
        results=_argument("results"),
        duration_ns=_argument("duration").cast("long"),
    )


def _call(*, failed: Column, code: Column | None = None, duration_ns: Column | None = None, **texts: Column) -> Column:
    number = F.lit(None).cast("long")
    fields = {
        **{name: value.cast("string") for name, value in texts.items()},
        "result": F.when(failed, FAILED).otherwise(OK),
        "code": number if code is None else code,
        "duration_ns": number if duration_ns is None else duration_ns,
    }
    return F.struct(*(fields[name].alias(name) for name in sorted(fields)))


def _argument(name: str) -> Column:
    return F.get_json_object("arguments", f"$.{name}") if name else F.lit(None).cast("string")
