"""What can go wrong in the pipeline, by guilt: all of it is the caller's or the machine's, none is a peer's."""

from __future__ import annotations

from qmf.errors import CallerError


class PipelineError(CallerError):
    """A job cannot do what it was asked for; the message says what and why, in one line."""


class LakeError(PipelineError):
    """The lake cannot be read or written: names the path and the reason."""


class MissingExtraError(PipelineError):
    """A library of the extra `pipeline` is not installed, or there is no Java for it."""

    def __init__(self, library: str) -> None:
        self.library = library
        super().__init__(library)

    def __str__(self) -> str:
        return f"{self.library} is not installed; get it with: pip install 'qmf[pipeline]'"
