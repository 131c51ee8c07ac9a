"""Finding out what did not arrive, by the numbers that our agents put on what they publish.

An agent counts 1, 2, 3 and so on for each of its runs and routing keys. The first number heard of one proves nothing:
others may have been sent before we listened. Sends nothing, has no clock.
"""

from __future__ import annotations

from collections.abc import Callable

#: Routing keys remembered of one agent, so that one that invents new ones doesn't fill the memory.
MAX_SUBJECTS = 1000


class SequenceGaps:
    """The last numbers heard, by agent and routing key."""

    def __init__(self) -> None:
        self._last: dict[str, dict[str, int]] = {}

    def missed(self, agent: str, subject: str, number: int) -> int:
        """Note the number of a message; how many are missing before it.

        A number that is not higher than the last comes from another run of the agent, which we hear of in a moment, or
        was heard already: nothing is missing before it.
        """
        known = self._last.setdefault(agent, {})
        last = known.pop(subject, None)
        if len(known) >= MAX_SUBJECTS:
            del known[next(iter(known))]
        known[subject] = number
        return 0 if last is None or number <= last else number - last - 1

    def forget_agent(self, agent: str) -> None:
        """The agent is gone or restarted: it counts anew."""
        self._last.pop(agent, None)

    def forget_subjects(self, gone: Callable[[str], bool]) -> None:
        """What these routing keys bring is not received any more, so that numbers go on without us."""
        for known in self._last.values():
            for subject in [subject for subject in known if gone(subject)]:
                del known[subject]
