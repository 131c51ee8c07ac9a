"""An authority, and certificates of a broker and of clients, in the files that clients of others read."""

from __future__ import annotations

import datetime
import ipaddress
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID
from support.waiting import WAIT_LIMIT

from qmf.broker import EmbeddedBroker
from qmf.broker.access.control import FileAccessControl
from qmf.broker.daemon.tls import BrokerTls, TlsOptions

#: Of the files that Java reads.
PASSWORD = "secret"
#: Whose certificate is good: ``DC=com, DC=acme, CN=bob``.
USER = "bob@acme.com"

#: Certificates that are refused, none among them, and a pattern of the reason in the broker's log; Java sends the
#: authority's certificate as well.
REFUSED: Mapping[tuple[str, ...], str] = {
    (): "peer did not return a certificate",
    ("mallory.pem",): "unable to get local issuer certificate|self-signed certificate in certificate chain",
    ("eve.pem",): "certificate revoked",
}


#: And what their clients are told: the alert of TLS, as OpenSSL and Java name it.
ALERTS: Mapping[tuple[str, ...], str] = {
    (): "alert:? certificate.required",
    ("mallory.pem",): "alert:? unknown.ca",
    ("eve.pem",): "alert:? certificate.revoked",
}


class Authority:
    """An authority with files in a folder: NAME.pem has certificate and key, NAME.p12 both for Java."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder = folder
        self.file = folder / f"{name}.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        signed = self._begin(self._name, self._key).add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
        signed = signed.add_extension(_usage(signs=True), True)
        self.certificate = signed.sign(self._key, hashes.SHA256())
        self.file.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, user: str) -> x509.Certificate:
        """A certificate of a client, ``NAME@DOMAIN``, or of the broker, ``localhost``; in files with the name."""
        name, _, domain = user.partition("@")
        parts = [x509.NameAttribute(NameOID.DOMAIN_COMPONENT, part) for part in reversed(domain.split(".")) if part]
        key = ec.generate_private_key(ec.SECP256R1())
        made = self._begin(x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)]), key)
        made = made.add_extension(_usage(signs=False), True)
        if not domain:
            own = [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
            made = made.add_extension(x509.SubjectAlternativeName(own), False)
        issued = made.sign(self._key, hashes.SHA256())
        pem = issued.public_bytes(serialization.Encoding.PEM)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        (self.folder / f"{name}.pem").write_bytes(private + pem)
        (self.folder / f"{name}.p12").write_bytes(
            pkcs12.serialize_key_and_certificates(
                name.encode(),
                key,
                issued,
                [self.certificate],
                serialization.BestAvailableEncryption(PASSWORD.encode()),
            )
        )
        return issued

    def revoke(self, certificates: Sequence[x509.Certificate]) -> Path:
        """The file of a list of revoked certificates."""
        now = datetime.datetime.now(datetime.UTC)
        made = x509.CertificateRevocationListBuilder().issuer_name(self._name)
        made = made.last_update(now - datetime.timedelta(hours=1)).next_update(now + datetime.timedelta(days=1))
        for certificate in certificates:
            revoked = x509.RevokedCertificateBuilder().serial_number(certificate.serial_number)
            made = made.add_revoked_certificate(revoked.revocation_date(now - datetime.timedelta(hours=1)).build())
        path = self.folder / "crl.pem"
        path.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        return path

    def _begin(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False)
        )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


@contextmanager
def certified_broker(folder: Path) -> Iterator[tuple[EmbeddedBroker, Authority]]:
    """A broker that lets in clients with certificates alone, and whose rules let `USER` alone do anything.

    Files of the authority: ``bob.pem``; ``eve.pem`` was revoked; ``mallory.pem`` is of another authority.
    """
    authority = Authority(folder)
    authority.issue("localhost")
    authority.issue(USER)
    revoked = authority.issue("eve@acme.com")
    Authority(folder, "other").issue("mallory@acme.com")
    rules = folder / "rules.acl"
    rules.write_text(f"acl allow {USER} all\nacl deny all all\n")
    tls = BrokerTls(
        TlsOptions(
            cert=folder / "localhost.pem",
            client_ca=authority.file,
            crl=authority.revoke([revoked]),
            client_certificate_required=True,
        )
    )
    with EmbeddedBroker(
        queues=["jobs"],
        ssl_context=tls.context,
        server_certificate=lambda: tls.certificate,
        certificates=True,
        access=FileAccessControl(rules),
    ) as broker:
        yield broker, authority


def java_stores(authority: Authority, name: str) -> tuple[Path, Path]:
    """A Java keystore with a client's certificate, and one with the authority's, made with the JDK's keytool."""
    keytool = shutil.which("keytool")
    assert keytool is not None, "a JDK is needed"
    keys, trusted = authority.folder / f"{name}.jks", authority.folder / "trusted.jks"
    source = [
        "-srckeystore",
        str(authority.folder / f"{name}.p12"),
        "-srcstoretype",
        "PKCS12",
        "-srcstorepass",
        PASSWORD,
    ]
    for made, arguments in (
        (keys, ["-importkeystore", *source, "-destkeystore", str(keys), "-deststorepass", PASSWORD]),
        (trusted, ["-importcert", "-file", str(authority.file), "-keystore", str(trusted), "-storepass", PASSWORD]),
    ):
        if not made.exists():
            command = [keytool, "-J-XX:TieredStopAtLevel=1", *arguments, "-noprompt"]
            subprocess.run(command, check=True, capture_output=True, timeout=WAIT_LIMIT)
    return keys, trusted
