"""A number beyond limits for some time, and back again: what thresholds, rates, aggregates and ratios share.

A value is valid until the next one: agents publish changes only, so without a message it is still the same. For other
agents, `stale` limits that time.

Each level of the limits becomes active when the number was beyond its limit for its time, and lower levels with it. The
alert is open while a level is active, and has the severity of the highest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.detectors.base import NEVER, Detector, Evidence, Signal, evidence_of
from qmf.pipeline.correlate.message_templates import human
from qmf.pipeline.correlate.rules import Level, Limits, RatioRule, ValueRule
from qmf.views.times import duration_text


class LimitDetector(Detector):
    """Compares a number with the limits; subclasses and owners provide the number."""

    _stored = {  # noqa: RUF012
        "since": "_since", "good": "_good", "kept": "_kept", "back": "_back", "whose": "_origin", "last": "_last_at",
    }  # fmt: skip

    def __init__(self, rule: ValueRule | RatioRule, key: str) -> None:
        super().__init__(rule, key)
        self._limits: Limits = rule.limits
        #: For each level that isn't active: since when the number is beyond it.
        self._since: list[int | None] = [None for _ in rule.limits.levels]
        #: For each level that is active: since when the number is good again; 0 where it is not.
        self._good: list[int | None] = [None for _ in rule.limits.levels]
        self._last_at = 0
        #: Of the bad time: the first sample, the worst, the last.
        self._kept: list[Evidence] = []
        #: The sample that was good again.
        self._back: Evidence | None = None
        self._origin: tuple[str | None, str | None] = (None, None)

    @property
    def is_idle(self) -> bool:
        """True where nothing is beyond a limit, and no alert is open."""
        return self._open is None and not self._kept

    def compare(self, signal: Signal, value: float) -> None:
        """Process the number of a signal."""
        limits, at = self._limits, signal.at
        lowest = limits.levels[0]
        self._last_at = at
        if self._open is None and not self._kept and not limits.is_bad(value, lowest):
            return  # the usual case: all is well, and was before
        self._origin = (signal.agent, signal.object)
        sample = evidence_of(signal, value)
        self._keep(sample, value)
        for index, level in enumerate(limits.levels):
            good = self._good[index]
            if good is None:
                beyond = limits.is_bad(value, level)
                since = self._since[index]
                self._since[index] = (at if since is None else since) if beyond else None
            elif limits.is_good(value, level):
                self._good[index] = good or at
            elif good and limits.is_bad(value, level):
                self._good[index] = 0
        self._back = sample if limits.is_good(value, lowest) and self._open is not None else None
        self._activate(at)
        self._set_due()

    def on_value_gone(self, at: int, reason: str) -> None:
        """The number doesn't exist any more."""
        if self._open is not None:
            self._clear_alert(at, reason, [])
        self._reset()
        self._set_due()

    def feed(self, signal: Signal) -> None:
        raise NotImplementedError

    def advance(self, now: int) -> None:
        while self.due < now:
            at = self.due
            if self._stale_at() == at:
                assert self._limits.stale is not None
                self.on_value_gone(at, f"no sample for {duration_text(self._limits.stale)}")
            else:
                self._activate(at)
                self._set_due()

    def pending(self) -> Iterable[AlertRow]:
        if self._open is None and self._kept:
            (index,) = [n for n, since in enumerate(self._since) if since is not None][-1:]
            yield self._alert_change(
                self._last_at,
                self._began(),
                self._evidence(),
                self._origin,
                self._limits.levels[index].severity,
                self._values(self._limits.levels[index]),
            )

    # -- levels

    def _activate(self, at: int) -> None:
        """Bring the levels and the alert up to a time, which is that of a signal or of a deadline."""
        levels = self._limits.levels
        before = self._severity()
        for index, level in enumerate(levels):
            since = self._since[index]
            if since is not None and since + level.duration <= at:
                for lower in range(index + 1):
                    if self._good[lower] is None:
                        self._good[lower] = 0
        began = self._began() if self._open is None else self._open.began_ns
        for index, good in enumerate(self._good):
            if good is not None:
                self._since[index] = None
                if good and good + self._limits.keep <= at:
                    self._good[index] = None
        self._tell(at, before, began)

    def _tell(self, at: int, before: int | None, began: int) -> None:
        """Raise, change or clear the alert, if its severity changed."""
        index = self._severity()
        if index == before:
            return
        if index is None:
            back = self._back or self._kept[2]
            reason = f"back at {human(back[4], self._rule.unit or 'number')}"
            self._clear_alert(at, reason, [back], back[4])
            self._reset()
            return
        level = self._limits.levels[index]
        evidence = self._evidence() if before is None else [self._kept[2]]
        self._raise_alert(at, began, evidence, origin=self._origin, severity=level.severity, **self._values(level))

    def _severity(self) -> int | None:
        """The index of the highest active level."""
        return max((index for index, good in enumerate(self._good) if good is not None), default=None)

    def _values(self, level: Level) -> dict[str, Any]:
        return {"value": self._kept[2][4], "limit": level.limit}

    def _began(self) -> int:
        return min((since for since in self._since if since is not None), default=self._last_at)

    # -- samples

    def _keep(self, sample: Evidence, value: float) -> None:
        limits = self._limits
        if self._open is None and not limits.is_bad(value, limits.levels[0]):
            self._kept = []
        elif not self._kept:
            self._kept = [sample, sample, sample]
        else:
            worst = self._kept[1][4]
            is_worst = value > worst if limits.above else value < worst
            self._kept = [self._kept[0], sample if is_worst else self._kept[1], sample]

    def _evidence(self) -> list[Evidence]:
        samples = {(item[0], item[2], item[3]): item for item in self._kept}
        return sorted(samples.values(), key=lambda item: item[0])

    def _reset(self) -> None:
        self._since = [None for _ in self._since]
        self._good = [None for _ in self._good]
        self._kept, self._back = [], None

    # -- time

    def _stale_at(self) -> int:
        stale = self._limits.stale
        return NEVER if stale is None or self.is_idle else self._last_at + stale

    def _set_due(self) -> None:
        levels = self._limits.levels
        fires = (since + level.duration for since, level in zip(self._since, levels, strict=True) if since is not None)
        ends = (good + self._limits.keep for good in self._good if good)
        self.due = min(self._stale_at(), *fires, *ends, NEVER)

    def _state(self, now: int) -> dict[str, Any]:
        return {} if self.is_idle else super()._state(now)

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self._set_due()
