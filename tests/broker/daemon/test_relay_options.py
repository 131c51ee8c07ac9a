"""The options of `qmf-broker` about relaying."""

from __future__ import annotations

import argparse

import pytest

from qmf.broker.daemon.relay_options import add_relay_options, relay_options
from qmf.broker.relay.options import TIMEOUT, RelayOptions, UnknownDomains
from qmf.errors import CallerError


def parsed(*words: str) -> RelayOptions:
    parser = argparse.ArgumentParser()
    add_relay_options(parser)
    return relay_options(parser.parse_args(words))


def test_relaying_is_off_unless_it_is_asked_for() -> None:
    assert parsed() == RelayOptions()
    assert not parsed().enabled


def test_what_is_given() -> None:
    words = "--relay yes --relay-local-domain a.example --relay-local-domain b.example --relay-unknown-domains park"
    more = "--relay-timeout 60 --relay-agent them --relay-srv-domain *.example --relay-resolver [::1]:53"
    assert parsed(*words.split(), *more.split()) == RelayOptions(
        enabled=True,
        local_domains=["a.example", "b.example"],
        unknown_domains=UnknownDomains.PARK,
        timeout=60.0,
        agents=["them"],
        srv_domains=["*.example"],
        resolver="[::1]:53",
    )
    assert parsed("--relay-agent", "them").timeout == TIMEOUT


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--relay-local-domain", "a"), "--relay-local-domain needs --relay yes"),
        (("--relay", "yes", "--relay-resolver", "here"), "--relay-resolver must be a host and a port, not 'here'"),
        (("--relay", "yes", "--relay-resolver", "a:99999"), "must be a host and a port"),
    ],
)
def test_what_is_wrong_is_named(words: tuple[str, ...], text: str) -> None:
    with pytest.raises(CallerError, match=text):
        parsed(*words)
