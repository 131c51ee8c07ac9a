"""The base of all detectors: signals in, changes of alerts out, the open alert, and the state as JSON.

Times are nanoseconds since 1970. A deadline at the time of a signal comes after that signal. Stored states use the JSON
keys of `dump`, and of the detectors' `_state`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import attrs

from qmf.pipeline.correlate.alerts import NAME_LABEL, AlertRow, compact_json
from qmf.pipeline.correlate.message_templates import iso, render, render_template
from qmf.pipeline.correlate.rules import Rule
from qmf.schema import Severity

#: A time that is never reached.
NEVER = (1 << 63) - 1

#: The role of a signal of a deleted object.
GONE = -1

#: The role of a signal from which on a subject is expected.
BEGIN = -3

#: The role of a row of heartbeats that go on; its value is for how many ns after it the next one comes at the latest.
OPEN = 1

#: The reason of alerts that end because their agent said goodbye.
GOODBYE = "its agent said goodbye"

#: Identities of events that are remembered, to recognise events that were recorded twice.
_IDENTITIES = 16


class Signal(NamedTuple):
    """A row of the lake, as a rule sees it."""

    at: int  #: its time for the rule: its own time, or that of its arrival where its own can't be right
    ts: int  #: its own time
    run: str  #: and `seq`: identify the row in the lake
    seq: int
    epoch: int | None  #: of the agent
    role: int  #: its meaning for the rule; `GONE`, `BEGIN`, or as the detector defines
    value: float | None  #: of the rule's expression
    ident: str | None  #: the same for an event that was recorded twice
    agent: str | None  #: and `object`: of the row
    object: str | None
    fields: str | None  #: the columns for the rule's texts and evidence, as JSON


@attrs.define
class DetectorContext:
    """What detectors know besides their signals, as of `EvaluationPass`; all detectors of an evaluation share one."""

    outages: Sequence[tuple[int, int]] = ()
    ended: Mapping[str, int] = attrs.field(factory=dict)


#: The attributes of open alerts in stored states, with those of the table.
_STORED = {"began": "began_ns", "at": "at_ns"} | {name: name for name in ("severity", "message", "agent", "object")}
_TEXTS = ("labels", "annotations")


def stored_alert(alert: AlertRow) -> dict[str, Any]:
    """What is stored of an open alert."""
    texts = {name: json.loads(getattr(alert, name)) for name in _TEXTS}
    return {name: getattr(alert, column) for name, column in _STORED.items()} | texts


def restored_alert(rule: str, kind: str, key: str, content: Mapping[str, Any]) -> AlertRow:
    """An open alert from what is stored of it."""
    columns: dict[str, Any] = {column: content[name] for name, column in _STORED.items()}
    columns |= {name: compact_json(content[name]) for name in _TEXTS}
    began = content["began"]
    return AlertRow(
        alert_id=alert_id(rule, key, began), change="raised", rule=rule, rule_hash="", kind=kind,
        subject=subject_of(key), reason="", value=None, window_start_ns=began, window_end_ns=content["at"],
        evidence="[]", **columns,
    )  # fmt: skip


#: A signal as evidence, short and ready for JSON: at, ts, run, seq, value, fields.
Evidence = list[Any]


def evidence_of(signal: Signal, value: float | None = None) -> Evidence:
    """A signal as evidence; `value` replaces its own."""
    shown = signal.value if value is None else value
    return [signal.at, signal.ts, signal.run, signal.seq, shown, signal.fields]


def published_evidence(several: Sequence[Evidence]) -> str:
    """Pieces of evidence as they are published, as JSON."""
    found = []
    for at, ts, run, seq, value, fields in several:
        shown: dict[str, Any] = {"time": iso(ts), "run": run, "seq": seq}
        if at != ts:
            shown["counted"] = iso(at)
        if value is not None:
            shown["value"] = value
        found.append(shown | (json.loads(fields) if fields else {}))
    return compact_json(found)


class Detector:
    """Base of all detectors.

    Attributes:
        changes: of alerts, so far; without the hash of the rule.
        due: `advance` has something to do after this time; `NEVER` for nothing.
    """

    def __init__(self, rule: Rule, key: str) -> None:
        self._rule = rule
        self._key = key
        self.changes: list[AlertRow] = []
        self.due = NEVER
        self._open: AlertRow | None = None
        self._recent_idents: list[str] = []

    def feed(self, signal: Signal) -> None:
        """Process a signal; the caller has called `advance` with its time."""
        raise NotImplementedError

    def advance(self, now: int) -> None:
        """Process deadlines before `now`."""
        raise NotImplementedError

    def goodbye(self, agent: str, at: int) -> None:
        """An agent said goodbye; the caller has called `advance` with the time."""
        if self._open is not None and self._open.agent == agent:
            self._clear_alert(at, GOODBYE, [])

    def on_ends_known(self) -> None:
        """The context is another one than before."""

    def pending(self) -> Iterable[AlertRow]:
        """The alerts whose condition holds, but not for long enough yet, as they would be raised."""
        return ()

    def dump(self, now: int) -> str | None:
        """The state after everything before `now` as JSON, or None for that of a new detector."""
        state = {name: value for name, value in self._state(now).items() if value not in (None, [], {})}
        if self._open is not None:
            state["open"] = stored_alert(self._open)
        if state and self._recent_idents:
            state["idents"] = self._recent_idents
        return json.dumps(state, separators=(",", ":")) if state else None

    def load(self, text: str) -> None:
        """Restore a state from `dump`."""
        state = json.loads(text)
        found = state.pop("open", None)
        rule = self._rule
        self._open = None if found is None else restored_alert(rule.name, rule.kind.value, self._key, found)
        self._recent_idents = state.pop("idents", [])
        self._restore(state)

    # -- for subclasses

    #: The attributes that are stored, by their keys.
    _stored: ClassVar[Mapping[str, str]] = {}

    def _state(self, now: int) -> dict[str, Any]:  # noqa: ARG002 - some states are of no use after a time
        return {key: getattr(self, name) for key, name in self._stored.items()}

    def _restore(self, state: Mapping[str, Any]) -> None:
        for key in self._stored.keys() & state.keys():
            setattr(self, self._stored[key], state[key])

    def _is_new(self, signal: Signal) -> bool:
        """True unless the signal is an event that was recorded twice."""
        ident = signal.ident
        if ident is None:
            return True
        if ident in self._recent_idents:
            return False
        self._recent_idents = [*self._recent_idents[1 - _IDENTITIES :], ident]
        return True

    def _raise_alert(
        self,
        at: int,
        began: int,
        evidence: Sequence[Evidence],
        *,
        origin: tuple[str | None, str | None],
        severity: Severity | None = None,
        **values: Any,
    ) -> None:
        """Raise an alert, or change the severity of the open one.

        Its `origin` are agent and object; `severity` is None for that of the rule; `values` are for the templates:
        `value`, `count`, `limit`.
        """
        change = self._alert_change(at, began, evidence, origin, severity, values)
        if self._open is not None:
            # Labels identify the alert, so they stay as they were.
            change = attrs.evolve(change, change="changed", labels=self._open.labels)
        self._open = change
        self.changes.append(change)

    def _alert_change(
        self,
        at: int,
        began: int,
        evidence: Sequence[Evidence],
        origin: tuple[str | None, str | None],
        severity: Severity | None,
        values: Mapping[str, Any],
    ) -> AlertRow:
        """The alert as it is raised."""
        fields: dict[str, Any] = {}
        for item in evidence:
            fields |= json.loads(item[5]) if item[5] else {}
        severity = self._rule.severity if severity is None else severity
        known = {
            **fields,
            "rule": self._rule.name,
            "subject": subject_of(self._key),
            "agent": origin[0],
            "object": origin[1],
            "began": iso(began),
            "at": iso(at),
            "severity": severity.name.lower(),
            **values,
        }
        annotations = {
            name: render_template(self._rule, template, known) for name, template in self._rule.annotations.items()
        }
        return AlertRow(
            alert_id=alert_id(self._rule.name, self._key, began),
            change="raised",
            rule=self._rule.name,
            rule_hash="",
            kind=self._rule.kind.value,
            severity=int(severity),
            subject=known["subject"],
            agent=origin[0],
            object=origin[1],
            message=render(self._rule, known),
            reason="",
            value=values.get("value"),
            began_ns=began,
            at_ns=at,
            window_start_ns=min([began, *(item[0] for item in evidence)]),
            window_end_ns=at,
            evidence=published_evidence(evidence),
            labels=compact_json(self._labels(origin, known)),
            annotations=compact_json(annotations),
        )

    def _labels(self, origin: tuple[str | None, str | None], values: Mapping[str, Any]) -> dict[str, str]:
        found: dict[str, str | None] = {NAME_LABEL: self._rule.name}
        if grouped := self._rule.grouped_by:
            parts = self._key.split("\n")
            for number, (text, part) in enumerate(zip(grouped, parts, strict=False), 1):
                found[_GROUP_LABELS.get(text) or (text if text.isidentifier() else f"by_{number}")] = part
        elif self._key:
            found |= {"agent": origin[0], "object": origin[1]}
            if not any(origin):
                found["subject"] = subject_of(self._key)
        found |= {name: render_template(self._rule, text, values) for name, text in self._rule.labels.items()}
        return {name: text for name, text in found.items() if text}

    def _clear_alert(self, at: int, reason: str, evidence: Sequence[Evidence], value: float | None = None) -> None:
        """Clear the open alert."""
        assert self._open is not None
        cleared = self._open.clear(at, reason)
        self.changes.append(attrs.evolve(cleared, value=value, evidence=published_evidence(evidence)))
        self._open = None


_GROUP_LABELS: Mapping[str, str] = {"_agent": "agent", "_object": "object"}


def subject_of(key: str) -> str:
    """The subject of a key, for people."""
    return ", ".join(part for part in key.split("\n") if part)


def alert_id(rule: str, key: str, began: int) -> str:
    """The id of an alert: 32 hex digits, always the same for the same incident."""
    return hashlib.sha256(f"{rule}\x1f{key}\x1f{began}".encode()).hexdigest()[:32]


def open_alerts(rule: str, kind: str, key: str, state: str) -> Iterator[AlertRow]:
    """The open alerts in a state from `Detector.dump` of a subject."""
    found = json.loads(state)
    if "open" in found:
        yield restored_alert(rule, kind, key, found["open"])
    for own, inner in found.get("quotients", {}).items():
        yield from open_alerts(rule, kind, own, inner)
