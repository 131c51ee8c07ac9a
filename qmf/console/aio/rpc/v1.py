"""Answers of QMFv1: which frame completes one, and which refuses (QMF2.md 8.2)."""

from __future__ import annotations

from qmf.errors import RemoteError
from qmf.protocol import (
    BrokerResponse,
    ClassResponse,
    CommandComplete,
    Frame,
    PackageResponse,
    SchemaResponse,
)


def refusal(frame: Frame, agent: str | None) -> RemoteError | None:
    """The error that a frame tells; None for a frame that tells none."""
    if isinstance(frame, CommandComplete) and frame.code:
        return RemoteError(frame.text or "refused", frame.code, agent)
    return None


def is_answer(frame: Frame) -> bool:
    """True for frames that answer requests of this console."""
    return isinstance(frame, CommandComplete | PackageResponse | ClassResponse | SchemaResponse | BrokerResponse)


def is_last(frame: Frame) -> bool:
    """True for the frame that completes an answer: lists end with a frame of their own, others are one frame."""
    return isinstance(frame, CommandComplete | SchemaResponse | BrokerResponse)
