"""Asking the user, where there is one: the value of an argument, or whether to go on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

from qmf.errors import CallerError


class PromptCancelledError(CallerError):
    """The user was asked, and said no."""


class Prompter(Protocol):
    """Somebody at a terminal."""

    def value(self, question: str, check: Callable[[str], object], default: str | None) -> str:
        """A text that `check` does not refuse with a `QmfError`; asks again until it is one.

        Args:
            question: what is wanted, in one line.
            check: raises what is wrong with a text.
            default: taken for an empty line; None: an empty line is a text like others.

        Raises:
            CancelledError: the user gave up (Ctrl-C or Ctrl-D).
        """

    def confirm(self, question: str) -> bool:
        """Whether the user says yes."""


class TerminalPrompter:
    """Asks on the terminal."""

    def __init__(self, quiet: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext) -> None:
        """
        Args:
            quiet: gives a block in which nobody else draws on the terminal.
        """
        self._quiet = quiet

    def value(self, question: str, check: Callable[[str], object], default: str | None) -> str:
        """See `Prompter.value`."""
        # Late: a session that never asks does not load it.
        from prompt_toolkit import prompt
        from prompt_toolkit.validation import ValidationError, Validator

        from qmf.errors import QmfError

        class Check(Validator):
            def validate(self, document: object) -> None:
                text = getattr(document, "text", "")
                try:
                    check(text or default or "")
                except QmfError as error:
                    raise ValidationError(len(text), str(error)) from None

        try:
            with self._quiet():
                return prompt(f"{question}: ", validator=Check(), validate_while_typing=False) or default or ""
        except (KeyboardInterrupt, EOFError):
            raise PromptCancelledError("cancelled: nothing was called") from None

    def confirm(self, question: str) -> bool:
        """See `Prompter.confirm`."""
        from prompt_toolkit import prompt

        try:
            with self._quiet():
                return prompt(f"{question} [y/N] ").strip().lower() in ("y", "yes")
        except (KeyboardInterrupt, EOFError):
            return False
