"""What the rules do: one state machine per rule and subject, fed with signals in the order of time. Pure.

A machine knows nothing but its rule and what it was fed, and its state can be written down between any two signals:
that is why a batch over a whole lake and a stream over the same lake in any parts raise the same alerts.
"""

from __future__ import annotations

from qmf.pipeline.correlate.detectors.absence import AbsenceMachine
from qmf.pipeline.correlate.detectors.base import GONE, NEVER, Change, Context, Machine, Signal
from qmf.pipeline.correlate.detectors.count import CountMachine
from qmf.pipeline.correlate.detectors.join import EVENT, MATCHING, OTHER, JoinMachine
from qmf.pipeline.correlate.detectors.limits import ThresholdMachine
from qmf.pipeline.correlate.detectors.rate import RateMachine
from qmf.pipeline.correlate.detectors.sequence import SequenceMachine
from qmf.pipeline.correlate.rules import (
    AbsenceRule,
    CountRule,
    JoinRule,
    RateRule,
    Rule,
    SequenceRule,
    ThresholdRule,
)

__all__ = ["EVENT", "GONE", "MATCHING", "NEVER", "OTHER", "Change", "Context", "Machine", "Signal", "machine_for"]


def machine_for(rule: Rule, key: str, context: Context) -> Machine:
    """A machine in its first state.

    Args:
        rule: what to do.
        key: the subject: its parts with a line break between.
        context: what all machines know.
    """
    match rule:
        case ThresholdRule():
            return ThresholdMachine(rule, key)
        case RateRule():
            return RateMachine(rule, key)
        case AbsenceRule():
            return AbsenceMachine(rule, key, context)
        case SequenceRule():
            return SequenceMachine(rule, key)
        case CountRule():
            return CountMachine(rule, key)
        case JoinRule():
            return JoinMachine(rule, key)
        case _:
            raise TypeError(f"no machine for {rule!r}")
