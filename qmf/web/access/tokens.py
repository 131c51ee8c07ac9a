"""API tokens: secrets for programs, with scopes, kept as digests in a file.

A line is ``name:scopes:end:digest``: scopes as `parse_scopes` reads them, the day after which the token is void
(``2027-01-31``, or ``never``), and the SHA-256 of the secret in hexadecimal digits. A token has 256 random bits, so a
plain digest does not give it away. A changed file is read again; one that is wrong leaves the tokens as they were.
"""

from __future__ import annotations

import datetime
import hashlib
import hmac
import logging
import re
import secrets
from collections.abc import Callable
from pathlib import Path

import attrs

from qmf._text_files import file_version, read_text
from qmf.errors import CallerError
from qmf.web.scopes import Scope, parse_scopes

log = logging.getLogger("qmf.web")

#: What tokens begin with, so that people and scanners of secrets know them.
PREFIX = "qmf_"

_NAME = re.compile(r"[^:\s#][^:\n]{0,99}\Z")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


class TokensError(CallerError):
    """A file of tokens is not usable; the message names file, line and reason, never a token."""


@attrs.frozen(kw_only=True)
class ApiToken:
    """A token as the file has it.

    Attributes:
        name: of the program that has it.
        scopes: what it may do.
        end: the last day on which it is valid, or None.
        digest: SHA-256 of the secret, in hexadecimal digits.
    """

    name: str
    scopes: frozenset[Scope]
    end: datetime.date | None
    digest: str

    @property
    def line(self) -> str:
        """Its line in the file."""
        scopes = ",".join(sorted(scope.value for scope in self.scopes))
        return f"{self.name}:{scopes}:{self.end or 'never'}:{self.digest}"


def new_token(name: str, scopes: frozenset[Scope], end: datetime.date | None) -> tuple[str, ApiToken]:
    """A new token: its secret, which is not kept, and what the file has of it.

    Raises:
        TokensError: the name cannot be used.
    """
    if not _NAME.match(name):
        raise TokensError(f"{name!r} cannot be the name of a token: it has a colon or a line end, or begins a comment")
    secret = PREFIX + secrets.token_urlsafe(32)
    return secret, ApiToken(name=name, scopes=scopes, end=end, digest=_digest(secret))


class ApiTokens:
    """The tokens of a file, or none."""

    def __init__(self, path: Path | None, today: Callable[[], datetime.date] = datetime.date.today) -> None:
        """Read the file.

        Raises:
            TokensError: it cannot be read, or a line is wrong.
        """
        self._path = path
        self._today = today
        self._version = None if path is None else file_version(path)
        self._tokens = {} if path is None else read_tokens(path)

    def find(self, secret: str) -> ApiToken | None:
        """The token with this secret; None when there is none, or it is void."""
        self._reload()
        given = _digest(secret)
        found = self._tokens.get(given)
        if found is None or not hmac.compare_digest(found.digest, given):
            return None
        return None if found.end is not None and self._today() > found.end else found

    def holds(self, name: str, scope: Scope | None = None) -> bool:
        """Whether a token of this name, with a scope if that is given, is valid now, for what was begun with it."""
        self._reload()
        today = self._today()
        return any(
            item.name == name and (item.end is None or today <= item.end) and (scope is None or scope in item.scopes)
            for item in self._tokens.values()
        )

    def _reload(self) -> None:
        if self._path is None or (version := file_version(self._path)) == self._version:
            return
        self._version = version
        try:
            self._tokens = read_tokens(self._path)
        except TokensError as error:
            log.error("the tokens stay as they were: %s", error)


def read_tokens(path: Path) -> dict[str, ApiToken]:
    """The tokens of a file by digest; empty lines and comments (``#``) are ignored.

    Raises:
        TokensError: it cannot be read, or a line is wrong.
    """
    found: dict[str, ApiToken] = {}
    for number, line in enumerate(read_text(path, TokensError).splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            token = _parse(line.strip(), f"{path}:{number}")
            found[token.digest] = token
    return found


def _parse(line: str, where: str) -> ApiToken:
    parts = line.split(":")
    if len(parts) != 4 or not _NAME.match(parts[0]) or not _DIGEST.match(parts[3]):
        raise TokensError(f"{where}: expected name:scopes:end:digest, as qmf-web --new-token prints it")
    name, scopes, end, digest = parts
    try:
        return ApiToken(
            name=name,
            scopes=parse_scopes(scopes),
            end=None if end == "never" else datetime.date.fromisoformat(end),
            digest=digest,
        )
    except ValueError as error:
        raise TokensError(f"{where}: {error}") from error


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
