"""The numbers that are compared with limits: values and rates of one subject or of a group together, and ratios.

Counters that go down, or whose agent has another epoch, continue from zero, as in rollups. Other values start again
with another epoch: earlier samples belong to an earlier run of the agent.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.detectors.base import GONE, GOODBYE, NEVER, Detector, Signal
from qmf.pipeline.correlate.detectors.limits import LimitDetector
from qmf.pipeline.correlate.rules import SECOND, Aggregate, RateRule, RatioRule, ValueRule

#: Roles of a ratio.
DIVIDEND, DIVISOR = 0, 1

_DELETED = "the object was deleted"


class RateMeter:
    """Makes the change per second from the samples of one object, over the rule's time or since the sample before."""

    def __init__(self, rule: RateRule) -> None:
        self._of = rule
        #: Times, and growth since the oldest of them; one is at or before the start of the rule's time.
        self._window: list[list[float]] = []
        self._value: float | None = None
        self._epoch: int | None = None

    def add(self, at: int, value: float, epoch: int | None) -> float | None:
        """The change per second after another sample; None where it isn't known."""
        stale = self._of.limits.stale
        if self._window and stale is not None and at - self._window[-1][0] > stale:
            self.forget()
        growth = self._growth(value, epoch)
        self._value = value
        self._epoch = epoch if epoch is not None else self._epoch
        if growth is None:
            self._window = [[at, 0.0]]
            return None
        total = self._window[-1][1] + growth
        if at == self._window[-1][0]:
            # Recorded twice, or two samples of one time: a division by zero.
            self._window[-1][1] = total
            return None
        self._window.append([at, total])
        if self._of.over == 0:
            self._window = self._window[-2:]
            (begin, before), _ = self._window
            return (total - before) * SECOND / (at - begin)
        return self._over(at, total)

    def forget(self) -> None:
        """Begin again."""
        self._window, self._value, self._epoch = [], None, None

    def state(self, now: int) -> dict[str, Any]:
        """The state for JSON; empty where the samples are too old to be of use."""
        stale = self._of.limits.stale
        if not self._window or (stale is not None and now - self._window[-1][0] > stale):
            return {}
        return {"window": self._window, "value": self._value, "epoch": self._epoch}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The reverse."""
        self._window = state.get("window", [])
        self._value, self._epoch = state.get("value"), state.get("epoch")

    def _over(self, at: int, total: float) -> float | None:
        """The change over exactly the rule's time: samples don't arrive at its start, but before and after."""
        start = at - self._of.over
        while len(self._window) > 2 and self._window[1][0] <= start:
            self._window.pop(0)
        (first, low), (second, high) = self._window[:2]
        if first > start:
            return None  # the samples don't cover the rule's time yet
        before = low + (high - low) * (start - first) / (second - first)
        return (total - before) * SECOND / self._of.over

    def _growth(self, value: float, epoch: int | None) -> float | None:
        """Growth since the sample before; None where there is no comparable one."""
        if self._value is None:
            return None
        restarted = epoch is not None and self._epoch is not None and epoch != self._epoch and not self._of.continued
        if self._of.counter:
            return value if restarted or value < self._value else value - self._value
        return None if restarted else value - self._value


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
        stale = self._limits.stale
        if stale is not None:
            self._members = {name: item for name, item in self._members.items() if signal.at - item.at <= stale}
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


_AGGREGATES: Mapping[Aggregate, Callable[[list[float]], float]] = {
    Aggregate.SUM: sum,
    Aggregate.AVERAGE: lambda numbers: sum(numbers) / len(numbers),
    Aggregate.MIN: min,
    Aggregate.MAX: max,
    Aggregate.COUNT: lambda numbers: float(len(numbers)),
}


class _Quotient(LimitDetector):
    """The limits of one dividend."""

    def feed(self, signal: Signal) -> None:
        self.compare(signal, signal.value or 0.0)


class RatioDetector(Detector):
    """The value of an object divided by that of another one: each dividend is a subject, all of one id share a divisor.

    The last value of each is kept.
    """

    def __init__(self, rule: RatioRule, key: str) -> None:
        super().__init__(rule, key)
        self._of = rule
        #: The last sample of each dividend, by agent and object, and of each divisor.
        self._dividends: dict[str, Signal] = {}
        self._divisors: dict[str, Signal] = {}
        self._quotients: dict[str, _Quotient] = {}

    def feed(self, signal: Signal) -> None:
        name = f"{signal.agent}\n{signal.object}"
        own = self._dividends if signal.role == DIVIDEND else self._divisors
        if signal.role == GONE or signal.value is None:
            self._remove(name, signal.at, _DELETED)
            return
        own[name] = signal
        names = [name] if signal.role == DIVIDEND else list(self._dividends)
        for dividend in names:
            self._compare(dividend, signal.at)
        self._collect()

    def advance(self, now: int) -> None:
        for quotient in self._quotients.values():
            if quotient.due < now:
                quotient.advance(now)
        self._collect()

    def goodbye(self, agent: str, at: int) -> None:
        for name in [*self._dividends, *self._divisors]:
            if name.partition("\n")[0] == agent:
                self._remove(name, at, GOODBYE)

    def pending(self) -> Iterable[AlertRow]:
        for quotient in self._quotients.values():
            yield from quotient.pending()

    def _compare(self, name: str, at: int) -> None:
        dividend = self._dividends[name]
        quotient = self._quotients.get(name)
        divisor = sum(signal.value or 0.0 for signal in self._divisors.values())
        if not divisor:
            if quotient is not None:
                quotient.on_value_gone(at, "there is nothing to divide by")
            return
        if quotient is None:
            quotient = self._quotients[name] = _Quotient(self._of, name)
        fields = _merge_fields(*(signal.fields for signal in (*self._divisors.values(), dividend)))
        quotient.feed(dividend._replace(at=at, fields=fields, value=(dividend.value or 0.0) / divisor))

    def _remove(self, name: str, at: int, reason: str) -> None:
        if self._divisors.pop(name, None) is not None:
            for dividend in self._dividends:
                self._compare(dividend, at)
        self._dividends.pop(name, None)
        quotient = self._quotients.get(name)
        if quotient is not None:
            quotient.on_value_gone(at, reason)
        self._collect()

    def _collect(self) -> None:
        """Take the changes of all quotients, and forget those of objects that are gone."""
        # Changes of one time are in the order of the dividends, which a stored state keeps: it omits idle quotients.
        gone = self._quotients.keys() - self._dividends.keys()
        for name in (*self._dividends, *gone):
            quotient = self._quotients.get(name)
            if quotient is not None and quotient.changes:
                self.changes += quotient.changes
                quotient.changes = []
        for name in gone:
            del self._quotients[name]
        self.due = min((quotient.due for quotient in self._quotients.values()), default=NEVER)

    def _state(self, now: int) -> dict[str, Any]:
        return {
            "dividends": {name: list(signal) for name, signal in self._dividends.items()},
            "divisors": {name: list(signal) for name, signal in self._divisors.items()},
            "quotients": {name: text for name, item in self._quotients.items() if (text := item.dump(now)) is not None},
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._dividends = {name: Signal(*item) for name, item in state.get("dividends", {}).items()}
        self._divisors = {name: Signal(*item) for name, item in state.get("divisors", {}).items()}
        for name, text in state.get("quotients", {}).items():
            self._quotients[name] = quotient = _Quotient(self._of, name)
            quotient.load(text)
        self._collect()


def _merge_fields(*fields: str | None) -> str | None:
    """Columns of several samples as one; of columns of one name, the last."""
    found: dict[str, Any] = {}
    for text in fields:
        found |= json.loads(text) if text else {}
    return json.dumps(found) if found else None
