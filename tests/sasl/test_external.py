"""Whom certificates name."""

from __future__ import annotations

import pytest

from qmf.sasl.external import certificate_user

CN, DC, ORG = "commonName", "domainComponent", "organizationName"


@pytest.mark.parametrize(
    ("subject", "user"),
    [
        (((("commonName", "bob"),),), "bob"),
        ((((DC, "com"),), ((DC, "acme"),), ((CN, "bob"),)), "bob@acme.com"),
        ((((ORG, "Acme"),), ((CN, "guest"),)), "guest"),
        ((((CN, "outer"), (DC, "com")), ((CN, "inner"),)), "inner@com"),
        ((((ORG, "Acme"),),), ""),
        ((), ""),
    ],
)
def test_the_user_of_a_certificate(subject: tuple[object, ...], user: str) -> None:
    assert certificate_user({"subject": subject}) == user


def test_no_certificate() -> None:
    assert certificate_user(None) == ""
    assert certificate_user({}) == ""
