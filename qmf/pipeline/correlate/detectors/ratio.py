"""The value of an object divided by that of another one: each dividend is a subject, all of one id share a divisor."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import GONE, GOODBYE, NEVER, AlertChange, Detector, Signal
from qmf.pipeline.correlate.detectors.limits import LimitDetector
from qmf.pipeline.correlate.rules import RatioRule

#: Roles.
DIVIDEND, DIVISOR = 0, 1


class _Quotient(LimitDetector):
    """The limits of one dividend."""

    def feed(self, signal: Signal) -> None:
        self.compare(signal, signal.value or 0.0)


class RatioDetector(Detector):
    """Keeps the last value of each dividend and of each divisor."""

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
            self._remove(name, signal.at, "the object was deleted")
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

    def pending(self) -> Iterable[AlertChange]:
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
