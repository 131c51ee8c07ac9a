"""What a console may change in the broker's process, rather than in its nodes."""

from __future__ import annotations

from typing import Protocol


class ProcessControl(Protocol):
    """The process that runs a broker. A broker within another program has none."""

    @property
    def log_rules(self) -> str:
        """What is logged, such as ``notice+,debug+:Broker``."""
        ...

    def set_log_rules(self, text: str) -> None:
        """Change what is logged.

        Raises:
            ValueError: a rule is invalid; names it.
        """
        ...

    @property
    def precise_times(self) -> bool:
        """Whether times in the log have fractions of seconds."""
        ...

    def set_precise_times(self, precise: bool) -> None:
        """Change that."""
        ...

    def shut_down(self) -> None:
        """End the process soon, after the answer to the console."""
        ...
