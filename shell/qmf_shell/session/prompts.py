"""Asks the user at the terminal for the value of an argument, or for a confirmation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from qmf.errors import CallerError, QmfError


class PromptCancelledError(CallerError):
    """The user was asked, and cancelled or refused."""


class Prompter(Protocol):
    """Asks the user."""

    def value(self, question: str, check: Callable[[str], object], default: str | None) -> str:
        """Ask for a text, again and again until `check` raises no `QmfError`.

        Args:
            question: what is wanted, in one line.
            check: raises an error if a text is not valid.
            default: used for an empty line; None: an empty line is a text like others.

        Raises:
            PromptCancelledError: the user cancelled with Ctrl-C or Ctrl-D.
        """

    def confirm(self, question: str) -> bool:
        """True if the user answers yes."""

    def secret(self, question: str) -> str | None:
        """Ask for a text that is not shown; None if the user cancelled."""


class TerminalPrompter:
    """Asks on the terminal."""

    def __init__(self, exclusive: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext) -> None:
        """Make a prompter for this terminal.

        Args:
            exclusive: returns a context manager; while it is open, nothing else draws on the terminal.
        """
        self._exclusive = exclusive

    def value(self, question: str, check: Callable[[str], object], default: str | None) -> str:
        # Imported here, so that a session that never asks does not load it.
        from prompt_toolkit import prompt
        from prompt_toolkit.validation import ValidationError, Validator

        class QmfValidator(Validator):
            def validate(self, document: object) -> None:
                text = getattr(document, "text", "")
                try:
                    check(text or default or "")
                except QmfError as error:
                    raise ValidationError(len(text), str(error)) from None

        try:
            with self._exclusive():
                return prompt(f"{question}: ", validator=QmfValidator(), validate_while_typing=False) or default or ""
        except (KeyboardInterrupt, EOFError):
            raise PromptCancelledError("cancelled: nothing was called") from None

    def secret(self, question: str) -> str | None:
        from prompt_toolkit import prompt

        try:
            with self._exclusive():
                return prompt(question, is_password=True)
        except (KeyboardInterrupt, EOFError):
            return None

    def confirm(self, question: str) -> bool:
        from prompt_toolkit import prompt

        try:
            with self._exclusive():
                return prompt(f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except (KeyboardInterrupt, EOFError):
            return False
