"""Sees that a file of rules was changed, so that it is read again without a restart."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qmf._text_files import file_version
from qmf.pipeline.correlate.rule_file import load_rules
from qmf.pipeline.correlate.rule_table import RuleError
from qmf.pipeline.correlate.rules import Rule


class RuleWatch:
    """Watches one file; `asked` may be set by any thread, or by a signal's handler."""

    def __init__(self, file: str, print_line: Callable[[str], None]) -> None:
        """Begin with the file as it is.

        Args:
            file: with the rules.
            print_line: called with what was read, or what is wrong.
        """
        self._file = file
        self._print_line = print_line
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
