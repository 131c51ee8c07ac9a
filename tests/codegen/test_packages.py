"""Names of packages and documents."""

from __future__ import annotations

from pathlib import Path

import pytest
from qmf_codegen.errors import CodegenError
from qmf_codegen.packages import package_name, package_names


@pytest.mark.parametrize(
    ("file", "package"),
    [
        ("host.xml", "host"),
        ("apache-ha.xml", "apache_ha"),
        ("a.b.xml", "a_b"),
        ("2nd.xml", "_2nd"),
        ("class.xml", "class_"),
        ("größe.xml", "gr__e"),
        ("Some Thing", "Some_Thing"),
    ],
)
def test_packages_are_identifiers(file: str, package: str) -> None:
    assert package_name(Path("dir", file)) == package


def test_packages_belong_to_one_file() -> None:
    with pytest.raises(CodegenError, match=r"a-b.xml and a_b.xml would both become package 'a_b'"):
        package_names([Path("a-b.xml"), Path("a_b.xml")])
