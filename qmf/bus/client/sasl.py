"""SASL on the client's side: the frames of AMQP around the exchanges of `qmf.sasl`."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.bus.engine.sasl_frames import (
    CHALLENGE,
    MECHANISMS,
    OUTCOME,
    OUTCOME_AUTH,
    OUTCOME_OK,
    SASL_HEADER,
    SaslFrame,
    SaslFrameError,
    SaslFrameReader,
    init_frame,
    response_frame,
)
from qmf.bus.engine.security_layer import NotAuthenticated, UnknownProtocol
from qmf.sasl.channel import Channel
from qmf.sasl.client import NoMechanism, SaslCredentials, choose_mechanism
from qmf.sasl.gssapi import GssapiClient
from qmf.sasl.mechanism import ClientMechanism, SaslError

#: Challenges of one exchange; mechanisms need a few.
_MAX_CHALLENGES = 10


class SaslClient:
    """The client's side of one SASL exchange; the `SecurityLayer` of an engine.

    Attributes:
        channel: the connection; to be set when it is known, before the first bytes.
        ticket: of Kerberos for the broker; to be set as early, where GSSAPI may be used.
        passed: see `SecurityLayer`.
    """

    def __init__(self, credentials: SaslCredentials, permitted: Sequence[str] | None) -> None:
        """Begin an exchange with a broker.

        Args:
            credentials: of the client.
            permitted: names of mechanisms that may be used; None for all.
        """
        self.channel = Channel()
        self.ticket: GssapiClient | None = None
        self.passed = False
        self._credentials = credentials
        self._permitted = permitted
        self._reader = SaslFrameReader()
        self._output = SASL_HEADER
        self._header_received = False
        self._mechanism: ClientMechanism | None = None
        self._challenges = 0

    def feed(self, data: bytes | memoryview) -> bytes:
        """See `SecurityLayer`."""
        reader = self._reader
        reader.buffer += data
        if not self._header_received:
            try:
                self._header_received = reader.has_header()
            except SaslFrameError:
                first = repr(reader.buffer[:64]).removeprefix("b")
                raise UnknownProtocol(f"SASL header mismatch: unknown protocol [{first}]") from None
        try:
            while self._header_received and not self.passed and (frame := reader.next_frame()) is not None:
                self._on_frame(frame)
        except SaslFrameError as error:
            raise UnknownProtocol(str(error)) from error
        except NoMechanism as error:
            raise NotAuthenticated(f"{self._who} was refused: {error}") from error
        except SaslError as error:
            raise NotAuthenticated(f"{self._who} cannot log in: {error}") from error
        if not self.passed:
            return b""
        rest, reader.buffer = reader.buffer, b""
        return rest

    def output(self) -> bytes:
        """See `SecurityLayer`."""
        data, self._output = self._output, b""
        return data

    @property
    def _who(self) -> str:
        if self._credentials.username is not None:
            return f"user {self._credentials.username!r}"
        if self._credentials.token is not None:
            return "the client with a token"
        return "anonymous access" if self.ticket is None else "the client with a ticket"

    def _on_frame(self, frame: SaslFrame) -> None:
        mechanism = self._mechanism
        if mechanism is None:
            if frame.code != MECHANISMS:
                raise SaslFrameError("unexpected SASL frame instead of mechanisms")
            self._choose(frame.symbols(0))
        elif frame.code == CHALLENGE:
            self._challenges += 1
            if self._challenges > _MAX_CHALLENGES:
                raise SaslError(f"{mechanism.name}: the broker sends too many challenges")
            self._output += response_frame(mechanism.respond(frame.binary(0) or b""))
        elif frame.code == OUTCOME:
            self._finish(mechanism, frame)
        else:
            raise SaslFrameError("unexpected SASL frame of the broker")

    def _choose(self, offer: Sequence[str]) -> None:
        mechanism = choose_mechanism(offer, self._credentials, self.channel, self._permitted, self.ticket)
        self._mechanism = mechanism
        self._output += init_frame(mechanism.name, mechanism.initial(), self._credentials.host or None)

    def _finish(self, mechanism: ClientMechanism, frame: SaslFrame) -> None:
        code = frame.fields[0] if frame.fields else None
        if code != OUTCOME_OK:
            why = "" if code == OUTCOME_AUTH else f": the broker has a fault (SASL outcome {code})"
            raise NotAuthenticated(f"{self._who} was refused ({mechanism.name}){why}")
        mechanism.finish(frame.binary(1))
        self.passed = True
