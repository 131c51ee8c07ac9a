"""Programs that look for garbage less often, for as long as they run."""

from __future__ import annotations

import gc

from qmf._garbage import THRESHOLD, collecting_seldom


def test_collections_are_seldom_within_and_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with collecting_seldom():
        assert gc.get_threshold()[0] == THRESHOLD
        assert gc.get_freeze_count() > 0
        assert gc.isenabled()
    assert gc.get_threshold() == before
    assert gc.get_freeze_count() == 0
