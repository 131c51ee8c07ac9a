"""Failures of Delta tables are one line that names the table and the cause."""

from __future__ import annotations

import pytest

from qmf.pipeline.errors import LakeError, NoSpaceError
from qmf.pipeline.lake.delta_errors import delta_errors


class PanicException(BaseException):
    """As PyO3 makes it."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (OSError(28, "No space left on device"), NoSpaceError),
        (OSError("Failed to parse parquet: Generic LocalFileSystem error: (os error 28)"), NoSpaceError),
        (OSError("(os error 2)"), LakeError),
        (PanicException("called unwrap"), LakeError),
    ],
)
def test_a_full_disk_is_told_from_other_failures(error: BaseException, kind: type[LakeError]) -> None:
    with pytest.raises(LakeError) as caught, delta_errors("lake/table"):
        raise error
    assert type(caught.value) is kind
    assert str(caught.value).startswith("lake/table: ")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(13, "Permission denied"), "Permission denied"),
        (
            OSError("Kernel error -> Generic S3 error\n   \x1b[31m↳\x1b[0m IO error\n    \x1b[31m↳\x1b[0m refused\n"),
            "Generic S3 error: IO error: refused",
        ),
        (ValueError("first\n\nsecond"), "first"),
        (ValueError(""), "ValueError"),
        (ValueError("x" * 1000), "x" * 300),
    ],
)
def test_a_failure_is_one_line(error: Exception, text: str) -> None:
    with pytest.raises(LakeError) as caught, delta_errors("lake/table"):
        raise error
    assert str(caught.value) == f"lake/table: {text}"
