"""Certificates and keys in a database of NSS, as qpidd has them, by the programs of NSS that read it.

A database is exported to files in a folder of this process, the key encrypted with the password of the database: it is
never there in plain.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from qmf.connecting.tls import TlsError

#: Seconds that a program has.
_TIMEOUT = 120
#: A line of the list of certificates: the name, and what it is trusted for, TLS first.
_TRUST = re.compile(r"(?P<name>.*\S)\s+(?P<tls>[a-zA-Z]*),[a-zA-Z]*,[a-zA-Z]*\s*\Z")


class NssDatabase:
    """A database.

    Attributes:
        cert, authorities: files in PEM, there after `export`; `cert` has the chain, and the key.
        password: file whose first line is the password of the database, and of the key.
    """

    def __init__(self, folder: Path, name: str, password: Path) -> None:
        """Look for the programs; nothing is read yet.

        Args:
            folder: of the database.
            name: of the broker's certificate.

        Raises:
            TlsError: a program is missing.
        """
        missing = [program for program in ("certutil", "pk12util", "openssl") if shutil.which(program) is None]
        if missing:
            raise TlsError(f"--ssl-cert-db needs the programs of NSS (libnss3-tools) and openssl: no {missing[0]}")
        self.password = password
        self._database = folder
        self._name = name
        files = Path(tempfile.mkdtemp(prefix="qmf-broker-nss-"))
        weakref.finalize(self, shutil.rmtree, files, ignore_errors=True)
        self.cert, self.authorities = files / "cert.pem", files / "authorities.pem"

    def export(self) -> None:
        """Write the files, as the database is now.

        Raises:
            TlsError: the database, or something in it, cannot be read; the files are as they were.
        """
        secret = self._secret()
        archive = self.cert.with_suffix(".p12")
        try:
            self._run("pk12util", "-o", str(archive), "-n", self._name, "-w", str(self.password))
            # The password of what is written comes from the input: in the file it would be the second line.
            unpack = ["openssl", "pkcs12", "-in", str(archive), "-passin", f"file:{self.password}"]
            own = self._output([*unpack, "-clcerts", "-passout", "fd:0"], secret)
            chain = self._output([*unpack, "-cacerts", "-nokeys"])
        finally:
            archive.unlink(missing_ok=True)
        authorities = b"".join(self._run("certutil", "-L", "-n", name, "-a") for name in self._authority_names())
        self.cert.write_bytes(own + chain)
        self.authorities.write_bytes(authorities)

    def _authority_names(self) -> Sequence[str]:
        """Certificates that are trusted to issue others for clients, or for servers, of TLS."""
        lines = self._run("certutil", "-L").decode("utf-8", "replace").splitlines()
        found = [match for match in map(_TRUST.match, lines) if match is not None]
        return [match["name"] for match in found if {"C", "T"} & set(match["tls"])]

    def _secret(self) -> bytes:
        try:
            return self.password.read_bytes().partition(b"\n")[0].rstrip(b"\r")
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise TlsError(f"cannot read the file of the password {self.password}: {reason}") from error

    def _run(self, program: str, *words: str) -> bytes:
        keys = ["-k" if program == "pk12util" else "-f", str(self.password)]
        return self._output([program, "-d", str(self._database), *words, *keys])

    def _output(self, command: Sequence[str], given: bytes = b"") -> bytes:
        program = command[0]
        try:
            done = subprocess.run(command, input=given, capture_output=True, timeout=_TIMEOUT, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise TlsError(f"{program} cannot read {self._database}: {error}") from error
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            reason = said[-1] if said else f"exit code {done.returncode}"
            raise TlsError(f"{program} cannot read {self._name!r} of {self._database}: {reason}")
        return done.stdout
