"""Options of the job `correlate`."""

from __future__ import annotations

import attrs

from qmf.pipeline.correlate.rules import Rule

#: ns that rows may be late, see `event_time`.
DEFAULT_LATE = 30 * 10**9


@attrs.frozen(kw_only=True)
class CorrelateOptions:
    """What to correlate.

    Attributes:
        lake: path, or for a batch any URL that Spark reads.
        out: folder of the tables; for a stream a folder of this machine.
        rules: to evaluate.
        file: of the rules, for messages.
        first, last: days of a batch, ``2030-01-31``, both included; None for no limit.
        late: ns that rows may be late, see `event_time`.
    """

    lake: str
    out: str
    rules: tuple[Rule, ...]
    file: str = "rules"
    first: str | None = None
    last: str | None = None
    late: int = DEFAULT_LATE
