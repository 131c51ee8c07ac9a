"""Reads rules from TOML: a table per rule, named after the rule. All errors are reported, with file, line and key.

::

    [disk-full]
    kind = "threshold"
    class = "qmf.host:filesystem"
    value = "percent"
    above = 90
    clear = 85
    for = "5m"
    message = "{mountPoint} is {value:.0f} % full"
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from qmf._text_files import file_version, read_text
from qmf._toml import TomlSyntaxError, key_lines, parse_toml
from qmf.pipeline.correlate.message_templates import CHANGING_FIELDS, UNITS, template_fields
from qmf.pipeline.correlate.rule_readers import READERS, read_severity
from qmf.pipeline.correlate.rules import NOTIFY_TABLES, Rule, RuleError, RulePlace
from qmf.pipeline.toml_tables import TomlErrors, TomlTable
from qmf.schema import Severity

#: Octets of a short string on the bus.
_NAME_OCTETS = 255

#: Keys of other programs' rules, and what to write here.
_HINTS = {
    "expr": "give class, value, and above or below",
    "alert": "the name of the table is the name of the alert",
    "keep_firing_for": "only rules with limits have it",
    "summary": "write message, or annotations.summary",
}


def load_rules(path: str | Path) -> tuple[Rule, ...]:
    """Read a file of rules.

    Raises:
        RuleError: the file can't be read, it is not TOML, or a rule is wrong.
    """
    return parse_rules(read_text(path, RuleError), str(path))


def load_valid_rules(path: str | Path) -> tuple[tuple[Rule, ...], tuple[str, ...]]:
    """Read a file, and leave out rules with errors, each with a line; `RuleError` if no rule in it is right."""
    rules, errors = _read_rules(read_text(path, RuleError), str(path))
    if not rules:
        errors.check(str(path), RuleError)
    return rules, errors.texts(str(path))


def parse_tables(text: str, file: str) -> dict[str, Any]:
    """The tables of a text; raises `RuleError`, with a line for each error, where it is not TOML."""
    try:
        return parse_toml(text)
    except TomlSyntaxError as wrong:
        raise RuleError("\n".join(f"{file}:{line}: {error}" for line, error in wrong.errors)) from None


def parse_rules(text: str, file: str = "rules") -> tuple[Rule, ...]:
    """Read rules from a text.

    Args:
        text: TOML.
        file: its name in messages.

    Raises:
        RuleError: as of `load_rules`.
    """
    rules, errors = _read_rules(text, file)
    errors.check(file, RuleError)
    return rules


def _read_rules(text: str, file: str) -> tuple[tuple[Rule, ...], TomlErrors]:
    tables = parse_tables(text, file)
    lines = key_lines(text)
    errors = TomlErrors(lines)
    rules: list[Rule] = []
    for name in NOTIFY_TABLES & tables.keys():
        tables.pop(name)
    for name, content in tables.items():
        if len(name.encode()) > _NAME_OCTETS:
            errors.add((name,), f"the name is longer than {_NAME_OCTETS} octets")
        elif not isinstance(content, dict):
            errors.add((name,), f"must be a table, [{name}]")
        elif (rule := _rule(name, TomlTable(content, (name,), errors))) is not None:
            own = {str(path[1]): line for path, line in lines.items() if len(path) == 2 and path[0] == name}
            rules.append(attrs.evolve(rule, place=RulePlace(file, lines.get((name,)), own)))
    if not tables:
        errors.add((), "no rule in it")
    return tuple(rules), errors


def _rule(name: str, table: TomlTable) -> Rule | None:
    kind = table.choice("kind", tuple(READERS), needed=True)
    if kind is None:
        return None
    annotations = table.named_texts("annotations")
    common: dict[str, Any] = {
        "name": name,
        "severity": read_severity(table) or Severity.WARN,
        "message": table.text("message") or annotations.pop("summary", None),
        "labels": table.named_texts("labels"),
        "annotations": annotations,
        "unit": table.choice("unit", UNITS),
        "follow": table.named_texts("follow"),
        "evidence": table.texts("evidence") or (),
    }
    for column, name in common["follow"].items():
        if not name.partition(":")[2]:
            table.fail(f"follow.{column}", f"must be a class such as qmf.host:host, not {name!r}")
    _check_templates(table, common)
    rule = READERS[kind](table, common)
    table.end(hints=_HINTS)
    return None if table.failed else rule


def _check_templates(table: TomlTable, common: Mapping[str, Any]) -> None:
    templates = {"message": common["message"] or ""}
    templates |= {f"labels.{name}": text for name, text in common["labels"].items()}
    templates |= {f"annotations.{name}": text for name, text in common["annotations"].items()}
    for key, template in templates.items():
        try:
            fields = template_fields(template)
        except ValueError as error:
            table.fail(key, str(error))
            continue
        for prefix in (field.partition(".")[0] for field in fields if "." in field):
            if prefix not in common["follow"]:
                table.fail(key, f"{{{prefix}. ...}}: follow doesn't say to which class {prefix} refers")
        changing = [field for field in fields if field in CHANGING_FIELDS]
        if key.startswith("labels.") and changing:
            table.fail(key, f"{{{changing[0]}}} changes while the alert lasts, and labels identify it: use annotations")


# -- files that change


class RuleWatch:
    """Sees that a file of rules was changed, so that it is read again without a restart.

    `asked` may be set by any thread, or by a signal's handler.
    """

    def __init__(self, file: str, print_line: Callable[[str], None]) -> None:
        """Begin with the file as it is; `print_line` gets what was read, or what is wrong."""
        self._file, self._print_line = file, print_line
        self._seen = file_version(file)
        self.asked = False

    def changed_rules(self) -> tuple[Rule, ...] | None:
        """The rules, if the file was changed or it was asked for; None otherwise, and for a file with errors."""
        found = file_version(self._file)
        if not self.asked and found in (self._seen, None):
            return None
        self.asked, self._seen = False, found
        try:
            rules = load_rules(self._file)
        except RuleError as error:
            self.refuse(error)
            return None
        self._print_line(f"Read {self._file} again: {len(rules)} rules")
        return rules

    def refuse(self, error: RuleError) -> None:
        """Say in one line that the rules that were read before stay."""
        first, *others = str(error).splitlines()
        more = f" (and {len(others)} more: qmf-pipeline rules check {self._file})" if others else ""
        self._print_line(f"{first}{more}; the rules that were read before stay")


@contextmanager
def read_again_on_hangup(watch: RuleWatch) -> Iterator[None]:
    """SIGHUP reads the file again, until the block ends. For the main thread."""

    def handle(*_: object) -> None:
        watch.asked = True

    before = signal.signal(signal.SIGHUP, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
