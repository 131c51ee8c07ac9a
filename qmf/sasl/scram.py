"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, 7677), with and without channel binding.

No password passes, both sides prove that they know it, and the server keeps only what proofs are checked with. The
messages are those of the library scramp (extra `sasl`), which is loaded with the first exchange.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import attrs

from qmf._extras import install_hint
from qmf.sasl.channel import Channel
from qmf.sasl.mechanism import SaslError
from qmf.sasl.results import Authenticated, Challenge, Rejected, Result

#: Without channel binding, the strongest first.
SCRAM_NAMES = ("SCRAM-SHA-512", "SCRAM-SHA-256")
#: Behind the names of mechanisms with channel binding.
PLUS = "-PLUS"
#: How both ends are bound to the channel (RFC 5929): TLS 1.3 has it too, unlike `tls-unique`.
_BINDING = "tls-server-end-point"


@attrs.frozen
class ScramKeys:
    """What a server knows of a password.

    Attributes:
        salt: of the user.
        iterations: of the hash.
        stored_key, server_key: RFC 5802, part 3.
    """

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def scram_is_installed() -> bool:
    """Whether the library is there."""
    return importlib.util.find_spec("scramp") is not None


def make_keys(name: str, password: str, *, iterations: int, salt: bytes | None = None) -> ScramKeys:
    """Keys of a password.

    Args:
        name: of the mechanism, without ``-PLUS``.
        password: it.
        iterations: at least 4,096.
        salt: None for a new one.

    Raises:
        SaslError: the password has characters that SASL does not permit (RFC 4013), or the library is missing.
    """
    scramp = _library()
    try:
        salt, stored, server, _ = scramp.ScramMechanism(name).make_auth_info(password, iterations, salt)
    except scramp.ScramException as error:
        raise SaslError(f"{name}: {error}") from error
    return ScramKeys(salt, iterations, stored, server)


class ScramClient:
    """A client that proves that it knows its password."""

    def __init__(self, name: str, username: str, password: str, channel: Channel) -> None:
        """Make the client of one exchange.

        Args:
            name: of the mechanism, with ``-PLUS`` for channel binding.
            username, password: of the user.
            channel: has the server's certificate, for channel binding.

        Raises:
            SaslError: the name or the password has characters that SASL does not permit.
        """
        self.name = name
        scramp = self._scramp = _library()
        binding = _binding(channel) if name.endswith(PLUS) else None
        self._proven = False
        try:
            self._client = scramp.ScramClient([name], username, password, channel_binding=binding)
        except scramp.ScramException as error:
            raise SaslError(f"{name}: {error}") from error

    def initial(self) -> bytes | None:
        """See `ClientMechanism`."""
        message: str = self._client.get_client_first()
        return message.encode()

    def respond(self, challenge: bytes) -> bytes:
        """See `ClientMechanism`."""
        text = self._text(challenge)
        if self._client.stage == 3:  # a server that sends its proof as a challenge
            self._check_proof(text)
            return b""
        try:
            self._client.set_server_first(text)
            message: str = self._client.get_client_final()
        except self._scramp.ScramException as error:
            raise SaslError(f"{self.name}: unusable challenge of the server: {error}") from error
        return message.encode()

    def finish(self, data: bytes | None) -> None:
        """See `ClientMechanism`."""
        if not self._proven:
            if data is None:
                raise SaslError(f"{self.name}: the server did not prove that it knows the password")
            self._check_proof(self._text(data))

    def _check_proof(self, text: str) -> None:
        try:
            self._client.set_server_final(text)
        except self._scramp.ScramException as error:
            raise SaslError(f"{self.name}: the server did not prove that it knows the password: {error}") from error
        self._proven = True

    def _text(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise SaslError(f"{self.name}: a message of the server is not UTF-8") from error


class ScramServer:
    """A server that checks a proof.

    Attributes:
        claimed_user: see `ServerMechanism`.
    """

    def __init__(self, name: str, find_keys: Callable[[str], ScramKeys], channel: Channel) -> None:
        """Make the server of one exchange.

        Args:
            name: of the mechanism.
            find_keys: of a user; of an unknown one, keys that no password has, the same each time.
            channel: has our certificate, for channel binding.
        """
        self.claimed_user = ""
        scramp = self._scramp = _library()
        self._find_keys = find_keys
        binding = None if channel.server_certificate is None else _binding(channel)
        self._server = scramp.ScramMechanism(name).make_server(self._keys, channel_binding=binding)

    def respond(self, response: bytes | None) -> Result:
        """See `ServerMechanism`."""
        if response is None:
            return Challenge(b"")
        server = self._server
        try:
            text = response.decode()
            if server.stage is None:
                server.set_client_first(text)
                return Challenge(server.get_server_first().encode())
            server.set_client_final(text)
            return Authenticated(self.claimed_user, server.get_server_final().encode())
        except UnicodeDecodeError:
            return Rejected("a message that is not UTF-8")
        except self._scramp.ScramException as error:
            return Rejected(
                "unknown user or wrong password" if "keys don't match" in str(error) else f"malformed message: {error}"
            )

    def _keys(self, user: str) -> tuple[bytes, bytes, bytes, int]:
        self.claimed_user = user
        keys = self._find_keys(user)
        return keys.salt, keys.stored_key, keys.server_key, keys.iterations


def _binding(channel: Channel) -> tuple[str, bytes]:
    assert channel.server_certificate is not None
    core: Any = importlib.import_module("scramp.core")
    return _BINDING, bytes(core.CBindData.from_der(channel.server_certificate))


def _library() -> Any:
    try:
        return importlib.import_module("scramp")
    except ImportError:
        raise SaslError(f"SCRAM needs the library scramp: {install_hint('sasl')}") from None
