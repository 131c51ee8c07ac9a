"""Access tokens: JSON Web Tokens (RFC 7519) of an issuer whose keys are known, by the library PyJWT (extra `oauth`)."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from typing import Any

import attrs

from qmf._extras import install_hint
from qmf._text_files import read_text
from qmf.errors import PeerError
from qmf.sasl.results import Authenticated, Pending, Rejected, Result
from qmf.users.verifiers import UsersError

#: Signatures that are accepted: those that the issuer alone can make.
_ALGORITHMS = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
#: Seconds by which the clocks of the issuer and of this machine may differ.
_LEEWAY = 10
#: Seconds for which keys that were read from a URL are kept, and that reading them may take.
_KEYS_LIFE, _KEYS_TIMEOUT = 300, 5
#: Bytes of the largest token.
MAX_TOKEN = 32 * 1024


@attrs.frozen(kw_only=True)
class TokenOptions:
    """Whose tokens are accepted.

    Attributes:
        keys: of the issuer: a file with a JSON Web Key Set or a public key in PEM, or an https URL of such a set.
        issuer: that tokens must name; None for any who has these keys.
        audience: for whom tokens must be, such as the name of the broker.
        user_claim: of a token that is the user's name.
        groups_claim: that lists the groups of the user, as access rules name them; a token may lack it. One in an
            object is named with dots, such as ``realm_access.roles``. Empty: tokens name no groups.
    """

    keys: str
    audience: str
    issuer: str | None = None
    user_claim: str = "sub"
    groups_claim: str = ""


class TokenError(PeerError):
    """A token is not accepted; the text says why, and not what is in it."""


@attrs.frozen(kw_only=True)
class TokenClaims:
    """What an accepted token says.

    Attributes:
        user: the name.
        groups: of the user; see `TokenOptions.groups_claim`.
        end: when the token is void, in seconds since 1970; later by what clocks may differ.
        claims: all of them.
    """

    user: str
    groups: frozenset[str]
    end: float
    claims: Mapping[str, Any] = attrs.field(repr=False)


class TokenVerifier:
    """Vouches for users by tokens; `qmf.sasl.server.Tokens`."""

    def __init__(self, options: TokenOptions) -> None:
        """Read the keys, but those of a URL, which are read when a token comes, and again after some minutes.

        Args:
            options: see there.

        Raises:
            UsersError: a file of keys cannot be read or used, or the library is missing.
        """
        self._options = options
        try:
            self._jwt: Any = importlib.import_module("jwt")
            importlib.import_module("cryptography")
        except ImportError:
            raise UsersError(f"tokens need the library PyJWT: {install_hint('oauth')}") from None
        self._keys = self._read_keys(options.keys)

    def check_token(self, user: str, token: str) -> Result:
        """See `qmf.sasl.server.Tokens`."""
        if len(token) > MAX_TOKEN:
            return Rejected("the token is too large")
        return Pending(lambda: self._check(user, token))

    def read(self, token: str) -> TokenClaims:
        """What a token says. Takes as long as reading the keys, if they come from a URL.

        Raises:
            TokenError: it is not accepted.
        """
        options, jwt = self._options, self._jwt
        try:
            claims: Mapping[str, Any] = jwt.decode(
                token,
                self._key_of(token),
                algorithms=list(_ALGORITHMS),
                audience=options.audience,
                issuer=options.issuer,
                leeway=_LEEWAY,
                options={"require": ["exp", "aud", options.user_claim]},
            )
        except (jwt.PyJWTError, OSError, ValueError) as error:
            raise TokenError(f"the token is not accepted: {error}") from error
        name = claims[options.user_claim]
        if not isinstance(name, str) or not name:
            raise TokenError(f"claim {options.user_claim!r} of the token is no name")
        groups = _groups(claims, options.groups_claim)
        return TokenClaims(user=name, groups=groups, end=float(claims["exp"]) + _LEEWAY, claims=claims)

    def _check(self, user: str, token: str) -> Authenticated | Rejected:
        try:
            found = self.read(token)
        except TokenError as error:
            return Rejected(str(error))
        if user not in ("", found.user):
            return Rejected(f"the token is of {found.user!r}, not of {user!r}")
        return Authenticated(found.user, groups=found.groups, token_end=found.end)

    def _key_of(self, token: str) -> Any:
        """The key that the token says it is signed with."""
        if self._keys is not None:
            identity = self._jwt.get_unverified_header(token).get("kid")
            for key in self._keys:
                if identity is None or getattr(key, "key_id", None) in (None, identity):
                    return key
            raise ValueError(f"no key {identity!r}")
        return self._client.get_signing_key_from_jwt(token)

    def _read_keys(self, where: str) -> list[Any] | None:
        """The keys of a file; None for a URL."""
        if where.startswith("https://"):
            self._client = self._jwt.PyJWKClient(where, lifespan=_KEYS_LIFE, timeout=_KEYS_TIMEOUT)
            return None
        if "://" in where:
            raise UsersError(f"{where}: keys are read from files and https URLs alone")
        text = read_text(where, UsersError)
        try:
            if text.lstrip().startswith("{"):
                return list(self._jwt.PyJWKSet.from_dict(json.loads(text)).keys)
            serialization = importlib.import_module("cryptography.hazmat.primitives.serialization")
            return [serialization.load_pem_public_key(text.encode())]
        except (self._jwt.PyJWTError, ValueError) as error:
            raise UsersError(f"{where}: neither a JSON Web Key Set nor a public key in PEM: {error}") from error


def _groups(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """The groups that a claim lists: a list of texts, or a text with blanks between them."""
    found: Any = claims.get(name)
    if found is None and name:
        found = claims
        for part in name.split("."):
            found = found.get(part) if isinstance(found, Mapping) else None
    listed = found.split() if isinstance(found, str) else found if isinstance(found, list) else []
    return frozenset(group for group in listed if isinstance(group, str))
