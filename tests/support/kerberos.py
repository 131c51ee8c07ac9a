"""A key distribution centre (MIT Kerberos) for tests: a realm of its own on a free port of this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
from support.waiting import wait_until

REALM = "QMF.TEST"
#: Password of the database's master key.
_MASTER = "master"


@attrs.frozen
class Realm:
    """A realm whose centre runs.

    Attributes:
        keytab: of the service ``amqp/localhost``.
        environment: of programs that use the realm.
    """

    folder: Path
    keytab: Path
    environment: dict[str, str]

    def log_in(self, user: str) -> None:
        """Get tickets for a user, whose password is the name."""
        self.run("kinit", user, text=f"{user}\n")

    def log_out(self) -> None:
        """Destroy the tickets."""
        self.run("kdestroy")

    def administer(self, command: str) -> None:
        """Run a command of kadmin."""
        self.run("kadmin.local", "-q", command)

    def run(self, *command: str, text: str = "") -> None:
        """Run a program with the environment of the realm."""
        env = {**os.environ, **self.environment, "PATH": f"{os.environ['PATH']}:/usr/sbin:/usr/bin"}
        subprocess.run(command, env=env, input=text, text=True, check=True, capture_output=True, timeout=60)


@contextmanager
def kerberos_realm(folder: Path) -> Iterator[Realm]:
    """A realm with the users ``ann`` and ``bob`` until the end of the block; skips the test without its programs."""
    centre = shutil.which("krb5kdc", path=f"{os.environ['PATH']}:/usr/sbin")
    if centre is None:
        pytest.skip("krb5kdc is missing: apt-get install krb5-kdc krb5-admin-server krb5-user")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "krb5.conf").write_text(f"""[libdefaults]
 default_realm = {REALM}
 dns_lookup_kdc = false
 dns_canonicalize_hostname = false
 rdns = false
 udp_preference_limit = 1
[realms]
 {REALM} = {{
  kdc = 127.0.0.1:{port}
 }}
[domain_realm]
 localhost = {REALM}
""")
    (folder / "kdc.conf").write_text(f"""[realms]
 {REALM} = {{
  database_name = {folder}/principal
  key_stash_file = {folder}/stash
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
 }}
""")
    environment = {
        "KRB5_CONFIG": str(folder / "krb5.conf"),
        "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
        "KRB5CCNAME": f"FILE:{folder}/tickets",
    }
    realm = Realm(folder, folder / "keytab", environment)
    realm.run("kdb5_util", "create", "-s", "-P", _MASTER)
    for user in ("ann", "bob"):
        realm.administer(f"addprinc -pw {user} {user}")
    realm.administer("addprinc -randkey amqp/localhost")
    realm.administer(f"ktadd -k {realm.keytab} amqp/localhost")
    process = subprocess.Popen(
        [centre, "-n"], env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: _listens(port), "the centre listens")
        yield realm
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
