"""Who may connect to the broker: its options, what contradicts, and what the operator is warned of."""

from __future__ import annotations

import argparse
import datetime
import logging
import socket
from collections.abc import Mapping
from pathlib import Path

from qmf._audit_log import AuditFile
from qmf.broker.daemon.nss_database import NssDatabase
from qmf.broker.daemon.tls import BrokerTls, TlsOptions
from qmf.connecting.loopback import is_loopback
from qmf.connecting.tls import TlsError
from qmf.sasl.gssapi import KerberosService
from qmf.sasl.mechanism import SaslError
from qmf.users.files import check_name
from qmf.users.prompt import read_new_password
from qmf.users.tokens import TokenOptions, TokenVerifier
from qmf.users.users import Users
from qmf.users.verifiers import hash_password

#: The port of TLS with a database of NSS, where none is given.
_TLS_PORT = 5671


class SecurityOptionError(Exception):
    """Options contradict each other, or let everybody in without being asked to."""


def check_security(options: argparse.Namespace, host: str) -> None:
    """Refuse options that contradict each other, or would let everybody in who reaches `host`, unless that is meant.

    Raises:
        SecurityOptionError: see above.
    """
    logs_in = _logs_in(options)
    if options.auth and not logs_in:
        raise SecurityOptionError("--auth yes needs --users FILE, --token-keys, --tls-client-ca, or --kerberos-keytab")
    if options.auth is False and logs_in:
        raise SecurityOptionError(
            "--auth no lets everybody in: leave out --users, --token-keys, --tls-client-ca and --kerberos-keytab"
        )
    if not logs_in and options.auth is None and not is_loopback(host):
        raise SecurityOptionError(
            f"anybody who reaches {host or 'this machine'} could use the broker: "
            "give --users FILE, or --auth no if that is meant"
        )
    if bool(options.token_keys) != bool(options.token_audience):
        raise SecurityOptionError("--token-keys and --token-audience are given together")
    if options.tls_cert is None and options.ssl_cert_db is None:
        for given, name in (
            (options.require_encryption, "require-encryption"),
            (options.tls_port is not None, "tls-port"),
            (options.mqtt_tls_port is not None, "mqtt-tls-port"),
        ):
            if given:
                raise SecurityOptionError(f"--{name} needs --tls-cert")


def _logs_in(options: argparse.Namespace) -> bool:
    """Whether clients have to log in."""
    by_certificate = options.tls_client_ca or (options.ssl_cert_db and options.tls_client_certificate)
    return bool(options.users or options.token_keys or by_certificate or options.kerberos_keytab)


def server_tls(options: argparse.Namespace) -> BrokerTls | None:
    """The TLS of the options; None without.

    Raises:
        TlsError: a file cannot be read or used, or options contradict each other.
    """
    if options.ssl_cert_db is not None:
        return _nss_tls(options)
    if options.ssl_cert_name is not None:
        raise TlsError("--ssl-cert-name needs --ssl-cert-db")
    if options.tls_cert is None:
        for name in (
            "tls_key",
            "tls_key_password",
            "tls_client_ca",
            "tls_crl",
            "tls_client_certificate",
            "tls_ciphers",
        ):
            if getattr(options, name):
                raise TlsError(f"--{name.replace('_', '-')} needs --tls-cert")
        return None
    return BrokerTls(_tls_options(options, options.tls_cert, options.tls_key_password, options.tls_client_ca))


def tls_port(options: argparse.Namespace) -> int | None:
    """The port of TLS beside one without; None for none."""
    if options.tls_port is None and options.ssl_cert_db is not None:
        return _TLS_PORT
    found: int | None = options.tls_port
    return found


def _nss_tls(options: argparse.Namespace) -> BrokerTls:
    """TLS with what is in a database of NSS; on its own port, as with qpidd."""
    for name in ("tls_cert", "tls_key", "tls_client_ca"):
        if getattr(options, name) is not None:
            raise TlsError(f"--{name.replace('_', '-')} and --ssl-cert-db exclude each other")
    if options.tls_key_password is None:
        raise TlsError("--ssl-cert-db needs --ssl-cert-password-file")
    database = NssDatabase(options.ssl_cert_db, options.ssl_cert_name or socket.getfqdn(), options.tls_key_password)
    authorities = database.authorities if options.tls_client_certificate else None
    return BrokerTls(_tls_options(options, database.cert, database.password, authorities), database.export)


def _tls_options(
    options: argparse.Namespace, cert: Path, key_password: Path | None, client_ca: Path | None
) -> TlsOptions:
    return TlsOptions(
        cert=cert,
        key=options.tls_key,
        key_password=key_password,
        client_ca=client_ca,
        crl=options.tls_crl,
        client_certificate_required=options.tls_client_certificate,
        minimum_version=options.tls_min_version,
        ciphers=options.tls_ciphers,
    )


def token_verifier(options: argparse.Namespace) -> TokenVerifier | None:
    """Who vouches for users by tokens; None for nobody.

    Raises:
        UsersError: a file of keys cannot be read or used, or a library is missing.
    """
    if options.token_keys is None:
        return None
    return TokenVerifier(
        TokenOptions(
            keys=options.token_keys,
            audience=options.token_audience,
            issuer=options.token_issuer,
            user_claim=options.token_user_claim,
            groups_claim=options.token_groups_claim,
        )
    )


def kerberos_service(options: argparse.Namespace) -> KerberosService | None:
    """The service for which clients have tickets; None for none.

    Raises:
        SecurityOptionError: there is no usable key, or a library is missing.
    """
    if options.kerberos_keytab is None:
        return None
    try:
        return KerberosService(options.kerberos_keytab)
    except SaslError as error:
        raise SecurityOptionError(f"--kerberos-keytab {error}") from error


def security_warnings(
    host: str, options: argparse.Namespace, *, users: Mapping[str, str] | None, tls: BrokerTls | None
) -> list[str]:
    """What is unsafe about a broker, one line each.

    Args:
        host: the address that it listens on.
        users: passwords by user, or None where there are none.
        tls: None without.
    """
    warnings = []
    plain = () if users is None else Users(users).plain
    if plain:
        count = f"the password of {plain[0]} is" if len(plain) == 1 else f"the passwords of {len(plain)} users are"
        warnings.append(f"{options.users}: {count} plain text; qmf-users passwd {options.users} NAME replaces one")
    if tls is not None and (text := tls.expiry_warning(datetime.datetime.now(datetime.UTC))):
        warnings.append(text)
    if options.acl_record is not None:
        warnings.append(
            f"everything is allowed: --acl-record only records what the rules of {options.acl_file} would do"
        )
    if not is_loopback(host) and (open_to := _exposures(options, known_users=users is not None, tls=tls is not None)):
        warnings.append(f"listening on {host or 'all addresses'} {', and '.join(open_to)}")
    return warnings


def open_audit(path: Path) -> AuditFile:
    """Open the audit log, into which the lines of the broker go from now on.

    Raises:
        SecurityOptionError: it can't be written.
    """
    try:
        handler = AuditFile(path)
    except OSError as error:
        raise SecurityOptionError(f"--audit-log {path}: {error.strerror or error}") from error
    logger = logging.getLogger("qmf.broker.audit")
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    return handler


def _exposures(options: argparse.Namespace, *, known_users: bool, tls: bool) -> list[str]:
    """How others can reach a broker that listens on a network."""
    found = []
    if not known_users and not _logs_in(options):
        found.append("without users (--users FILE), so that anybody who reaches it may use it")
    if not tls:
        found.append("without TLS (--tls-cert FILE), so that passwords and messages can be read on the way")
    elif (tls_port(options) is not None or options.mqtt_tls_port is not None) and not options.require_encryption:
        found.append("on a port without TLS as well (--require-encryption closes it)")
    return found


def print_hash(name: str) -> None:
    """Print the line of a file of users, for a password that is typed, or the first line of the standard input.

    Args:
        name: of the user; empty: the hash alone is printed.

    Raises:
        UsersError: the name or the password cannot be used.
    """
    if name:
        check_name(name)
    password = read_new_password(name)
    print(f"{name}:{hash_password(password)}" if name else hash_password(password))
