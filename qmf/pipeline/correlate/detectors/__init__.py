"""Detectors: state machines that evaluate one rule for one subject, fed with signals in the order of time. Pure.

A detector depends on its rule and its signals only, and its state can be stored between any two signals. So a batch
over a whole lake and a stream over the same lake, in steps of any size, raise the same alerts.
"""

from __future__ import annotations

from qmf.pipeline.correlate.detectors.absence import AbsenceDetector
from qmf.pipeline.correlate.detectors.base import (
    BEGIN,
    GONE,
    NEVER,
    OPEN,
    AlertChange,
    AlertTransition,
    Detector,
    DetectorContext,
    Signal,
)
from qmf.pipeline.correlate.detectors.count import CountDetector
from qmf.pipeline.correlate.detectors.join import EVENT, MATCHING, OTHER, JoinDetector
from qmf.pipeline.correlate.detectors.ratio import DIVIDEND, DIVISOR, RatioDetector
from qmf.pipeline.correlate.detectors.sequence import SequenceDetector
from qmf.pipeline.correlate.detectors.values import AggregateDetector, ValueDetector
from qmf.pipeline.correlate.rules import (
    AbsenceRule,
    CountRule,
    JoinRule,
    RatioRule,
    Rule,
    SequenceRule,
    ValueRule,
)

__all__ = [
    "BEGIN",
    "DIVIDEND",
    "DIVISOR",
    "EVENT",
    "GONE",
    "MATCHING",
    "NEVER",
    "OPEN",
    "OTHER",
    "AlertChange",
    "AlertTransition",
    "Detector",
    "DetectorContext",
    "Signal",
    "create_detector",
]


def create_detector(rule: Rule, key: str, context: DetectorContext) -> Detector:
    """A detector in its initial state.

    Args:
        rule: to evaluate.
        key: of the subject: its parts, separated by line breaks.
        context: common to all detectors.
    """
    match rule:
        case ValueRule():
            return ValueDetector(rule, key) if rule.aggregate is None else AggregateDetector(rule, key)
        case RatioRule():
            return RatioDetector(rule, key)
        case AbsenceRule():
            return AbsenceDetector(rule, key, context)
        case SequenceRule():
            return SequenceDetector(rule, key)
        case CountRule():
            return CountDetector(rule, key)
        case JoinRule():
            return JoinDetector(rule, key)
        case _:
            raise TypeError(f"no detector for {rule!r}")
