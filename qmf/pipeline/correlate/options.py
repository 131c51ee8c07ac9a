"""Options of the job `correlate`."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.pipeline.correlate.rules import Rule

#: ns that rows may be late, see `event_time`.
DEFAULT_LATE = 0


@attrs.frozen(kw_only=True)
class CorrelateOptions:
    """What to correlate.

    Attributes:
        lake: path, or URL of an object store.
        out: folder of the tables; for a stream a folder of this machine.
        rules: to evaluate.
        first, last: days of a batch, ``2030-01-31``, both included; None for no limit.
        late: ns that rows may be late, see `event_time`.
        storage: settings of the object store.
        wrong: the errors of rules that are in the file and were left out, for reports.
    """

    lake: str
    out: str
    rules: tuple[Rule, ...]
    first: str | None = None
    last: str | None = None
    late: int = DEFAULT_LATE
    storage: Mapping[str, str] = attrs.field(factory=dict)
    wrong: tuple[str, ...] = ()
