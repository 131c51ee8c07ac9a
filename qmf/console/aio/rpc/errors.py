"""Errors of the console beyond those of `qmf.errors`."""

from __future__ import annotations

from qmf.errors import PeerError


class AgentLost(PeerError):
    """The agent that was asked went away, or started anew, before it answered.

    Whether it did what was asked is unknown.

    Attributes:
        agent: its name.
        what: what was asked, e.g. ``method echo of broker``.
        reason: what happened to it, e.g. ``restarted (epoch 3, then 4)``.
    """

    def __init__(self, agent: str, what: str, reason: str) -> None:
        self.agent = agent
        self.what = what
        self.reason = reason
        super().__init__(agent, what, reason)

    def __str__(self) -> str:
        return f"agent {self.agent} {self.reason} before it answered {self.what}"
