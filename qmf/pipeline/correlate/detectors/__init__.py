"""Detectors: state machines that evaluate one rule for one subject, fed with signals in the order of time. Pure.

A detector depends on its rule and its signals only, and its state can be stored between any two signals. So a batch
over a whole lake and a stream over the same lake, in steps of any size, raise the same alerts.
"""

from __future__ import annotations

from qmf.pipeline.correlate.detectors.absence import AbsenceDetector
from qmf.pipeline.correlate.detectors.base import Detector, DetectorContext
from qmf.pipeline.correlate.detectors.events import CountDetector, JoinDetector, SequenceDetector
from qmf.pipeline.correlate.detectors.values import AggregateDetector, RatioDetector, ValueDetector
from qmf.pipeline.correlate.rules import AbsenceRule, CountRule, JoinRule, RatioRule, Rule, SequenceRule, ValueRule

__all__ = ["create_detector"]


def create_detector(rule: Rule, key: str, context: DetectorContext) -> Detector:
    """A detector of a rule in its initial state; the key of the subject has its parts, separated by line breaks."""
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
