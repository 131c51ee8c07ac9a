"""Fixtures of the shell's tests: a session over the invented world of `world`."""

from __future__ import annotations

import pytest
from qmf_shell.commands import standard
from qmf_shell.session.context import Context
from shell.world import FakeSource, Output, filesystem, make_output, process


@pytest.fixture
def source() -> FakeSource:
    return FakeSource([filesystem("/home"), filesystem("/"), process(1), process(4711)])


@pytest.fixture
def context(source: FakeSource) -> Context:
    return Context(source, standard())


@pytest.fixture
def output() -> Output:
    return make_output()
