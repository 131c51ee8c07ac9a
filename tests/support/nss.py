"""Databases of certificates of NSS, as qpidd reads them."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import trustme

#: The name of the broker's certificate in them, and their password.
NAME, PASSWORD = "localhost.localdomain", "p"


def needs_nss() -> None:
    """Skip a test where a program is missing."""
    if missing := [name for name in ("certutil", "pk12util", "openssl") if shutil.which(name) is None]:
        pytest.skip(f"{missing[0]} is not installed")


def nss_database(folder: Path, authority: trustme.CA) -> Path:
    """A folder with a database of an authority and a broker's certificate of it; its password is in ``password``."""
    server = folder / "server"
    issued = authority.issue_cert("localhost", "127.0.0.1", common_name="broker")
    issued.private_key_and_cert_chain_pem.write_to_path(str(server))
    authority.cert_pem.write_to_path(str(folder / "ca"))
    (folder / "password").write_text(f"{PASSWORD}\n")
    for command in (
        f"certutil -N -d {folder} -f {folder}/password",
        f"certutil -A -d {folder} -f {folder}/password -n authority -t CT,C, -i {folder}/ca",
        f"openssl pkcs12 -export -in {server} -name {NAME} -passout pass:{PASSWORD} -out {folder}/server.p12",
        f"pk12util -i {folder}/server.p12 -d {folder} -k {folder}/password -W {PASSWORD}",
    ):
        subprocess.run(shlex.split(command), check=True, capture_output=True)
    return folder
