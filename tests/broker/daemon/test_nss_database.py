"""Certificates in a database of NSS, with qpidd's options as the manual has them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import trustme
from broker.daemon.test_tls import BROKER, STAT
from support.nss import NAME, needs_nss, nss_database
from support.processes import running
from support.waiting import WAIT_LIMIT

from qmf.broker.daemon.cli import main
from qmf.broker.daemon.nss_database import NssDatabase
from qmf.connecting.tls import TlsError


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory, authority: trustme.CA) -> Path:
    needs_nss()
    return nss_database(tmp_path_factory.mktemp("nss"), authority)


def test_what_is_in_it(database: Path) -> None:
    found = NssDatabase(database, NAME, database / "password")
    found.export()
    text = found.cert.read_text()
    assert "BEGIN CERTIFICATE" in text
    assert "BEGIN ENCRYPTED PRIVATE KEY" in text
    assert "BEGIN PRIVATE KEY" not in text
    assert found.authorities.read_text().split() == (database / "ca").read_text().split()
    assert found.cert.parent.stat().st_mode & 0o077 == 0
    assert sorted(path.name for path in found.cert.parent.iterdir()) == ["authorities.pem", "cert.pem"]


def test_what_cannot_be_read(database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TlsError, match=r"pk12util cannot read 'other' of .*"):
        NssDatabase(database, "other", database / "password").export()
    (tmp_path / "wrong").write_text("wrong\n")
    with pytest.raises(TlsError, match="cannot read"):
        NssDatabase(database, NAME, tmp_path / "wrong").export()
    with pytest.raises(TlsError, match=r"cannot read the file of the password .*none"):
        NssDatabase(database, NAME, tmp_path / "none").export()
    with pytest.raises(TlsError, match="cannot read"):
        NssDatabase(tmp_path / "nowhere", NAME, database / "password").export()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(TlsError, match="no certutil"):
        NssDatabase(database, NAME, database / "password")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--ssl-cert-db", "."], "--ssl-cert-db needs --ssl-cert-password-file"),
        (["--ssl-cert-name", "x"], "--ssl-cert-name needs --ssl-cert-db"),
        (["--ssl-cert-db", ".", "--tls-cert", "x"], "--tls-cert and --ssl-cert-db exclude each other"),
    ],
)
def test_options_that_cannot_be_used(options: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", "0", *options]) == 2
    assert reason in capsys.readouterr().err


@pytest.mark.slow
def test_the_manuals_how_to(database: Path, authority: trustme.CA, tmp_path: Path) -> None:
    """Chapter 5.1.1, with ports of the system's choice."""
    client = tmp_path / "client"
    authority.issue_cert("bob@example.org", common_name="bob").private_key_and_cert_chain_pem.write_to_path(str(client))
    options = (
        f"--load-module /libs/ssl.so --ssl-cert-password-file {database}/password --ssl-cert-db {database}/ "
        f"--ssl-cert-name {NAME} --ssl-require-client-authentication --port 0 --ssl-port 0"
    )
    with running(*BROKER, *options.split()) as process:
        url = next(word for word in process.wait_for("amqps://").split() if word.startswith("amqps://")).rstrip(",.")
        for cert, code in ((client, 0), (None, 1)):
            done = subprocess.run(
                [sys.executable, "-c", STAT, "-b", url, "-c", *(["--ssl-certificate", str(cert)] if cert else [])],
                capture_output=True,
                text=True,
                timeout=WAIT_LIMIT,
                env={"SSL_CERT_FILE": str(database / "ca")},
                check=False,
            )
            assert done.returncode == code, done.stderr
            assert ("EXTERNAL" in done.stdout) is (cert is not None), done.stdout
        assert process.end() == 0
