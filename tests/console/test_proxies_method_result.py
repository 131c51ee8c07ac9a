"""Results of methods in the published API."""

from __future__ import annotations

import pytest

from qmf.console import MethodResult


def test_a_method_result_prints_and_reads_its_outputs() -> None:
    result = MethodResult(0, "OK", {"body": "Message Body", "sequence": 1})
    assert repr(result) == "OK (0) - {'body': 'Message Body', 'sequence': 1}"
    assert (result.body, result.missing) == ("Message Body", None)
    with pytest.raises(AttributeError):
        _ = result.__wrapped__
