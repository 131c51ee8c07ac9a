"""The numbers of threshold and rate rules: of one subject, or of all members of a group together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import GONE, GOODBYE, Signal
from qmf.pipeline.correlate.detectors.limits import LimitDetector
from qmf.pipeline.correlate.detectors.rate import RateMeter
from qmf.pipeline.correlate.rules import Aggregate, RateRule, ValueRule

_DELETED = "the object was deleted"


class ValueDetector(LimitDetector):
    """The number is the value of a sample, or its change per second."""

    def __init__(self, rule: ValueRule, key: str) -> None:
        super().__init__(rule, key)
        self._meter = RateMeter(rule) if isinstance(rule, RateRule) else None
        self._agent: str | None = None

    def feed(self, signal: Signal) -> None:
        if signal.role == GONE:
            self._forget(signal.at, _DELETED)
            return
        if signal.value is None:
            return
        self._agent = signal.agent
        if self._meter is None:
            self.compare(signal, signal.value)
            return
        number = self._meter.add(signal.at, signal.value, signal.epoch)
        if number is not None:
            self.compare(signal, number)

    def goodbye(self, agent: str, at: int) -> None:
        # The state of an agent that isn't known has no rate to forget, and its alert knows the agent.
        if agent in (self._agent, self._origin[0]) or (self._open is not None and self._open.agent == agent):
            self._forget(at, GOODBYE)

    def _forget(self, at: int, reason: str) -> None:
        if self._meter is not None:
            self._meter.forget()
        self.on_value_gone(at, reason)

    def _state(self, now: int) -> dict[str, Any]:
        meter = {} if self._meter is None else self._meter.state(now)
        state = super()._state(now)
        return {**state, "meter": meter, "agent": self._agent if meter or state else None}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self._agent = state.get("agent")
        if self._meter is not None:
            self._meter.restore(state.get("meter", {}))


class _Member:
    """An object of a group: its number, and what is needed to make it."""

    def __init__(self, rule: ValueRule, agent: str | None) -> None:
        self.agent = agent
        self.at = 0
        self.number: float | None = None
        self.meter = RateMeter(rule) if isinstance(rule, RateRule) else None

    def add(self, signal: Signal) -> bool:
        """Process a sample; True where it has a number."""
        assert signal.value is not None
        if self.meter is None:
            number: float | None = signal.value
        else:
            number = self.meter.add(signal.at, signal.value, signal.epoch)
        if number is not None:
            self.number = number
        self.at = signal.at
        return number is not None


class AggregateDetector(LimitDetector):
    """The number is the aggregate of the last values, or rates, of the group's members."""

    def __init__(self, rule: ValueRule, key: str) -> None:
        super().__init__(rule, key)
        assert rule.aggregate is not None
        self._of = rule
        self._compute = _AGGREGATES[rule.aggregate]
        self._members: dict[str, _Member] = {}

    def feed(self, signal: Signal) -> None:
        self._drop_stale(signal.at)
        name = f"{signal.agent}\n{signal.object}"
        if signal.role == GONE:
            if self._members.pop(name, None) is not None:
                self._again(signal)
            return
        if signal.value is None:
            return
        member = self._members.get(name)
        if member is None:
            member = self._members[name] = _Member(self._of, signal.agent)
        if member.add(signal):
            self._again(signal)

    def goodbye(self, agent: str, at: int) -> None:
        kept = {name: member for name, member in self._members.items() if member.agent != agent}
        if len(kept) < len(self._members):
            self._members = kept
            self._again(Signal(at, at, "", 0, None, 0, None, None, *self._origin, None), GOODBYE)

    def _again(self, signal: Signal, reason: str = _DELETED) -> None:
        """Compare the aggregate after a change of a member."""
        numbers = [member.number for member in self._members.values() if member.number is not None]
        if numbers:
            # The alert is about the group, not about the object whose sample came last.
            whose = signal.agent if self._of.by == ("_agent",) else None
            self.compare(signal._replace(agent=whose, object=None), self._compute(numbers))
        else:
            self.on_value_gone(signal.at, reason)

    def _drop_stale(self, now: int) -> None:
        stale = self._limits.stale
        if stale is not None:
            self._members = {name: item for name, item in self._members.items() if now - item.at <= stale}

    def _state(self, now: int) -> dict[str, Any]:
        stale = self._limits.stale
        members = {
            name: [item.agent, item.at, item.number, item.meter.state(now) if item.meter else {}]
            for name, item in self._members.items()
            if stale is None or now - item.at <= stale
        }
        return {**super()._state(now), "members": members}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        for name, (agent, at, number, meter) in state.get("members", {}).items():
            member = self._members[name] = _Member(self._of, agent)
            member.at, member.number = at, number
            if member.meter is not None:
                member.meter.restore(meter)


def _average(numbers: Iterable[float]) -> float:
    known = list(numbers)
    return sum(known) / len(known)


_AGGREGATES: Mapping[Aggregate, Callable[[list[float]], float]] = {
    Aggregate.SUM: sum,
    Aggregate.AVERAGE: _average,
    Aggregate.MIN: min,
    Aggregate.MAX: max,
    Aggregate.COUNT: lambda numbers: float(len(numbers)),
}
