"""An identity provider (OpenID Connect) for tests: https on a free port, one user who agrees to everything at once."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlencode, urlsplit

import jwt
import trustme
from cryptography.hazmat.primitives.asymmetric import rsa

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)


class IdentityProvider:
    """What the provider knows, for tests to change.

    Attributes:
        url: the issuer.
        ca_file: with the certificate of its authority.
        client, secret: of the only client that is known; without a secret it is a public client.
        claims: of the tokens it makes, over those that it makes itself.
        metadata: members of its metadata, over its own ones.
        methods: how a client may prove itself.
        error: what it answers instead of a code; empty: a code.
        key: that tokens are signed with.
    """

    def __init__(self, url: str, ca_file: Path) -> None:
        self.url, self.ca_file = url, ca_file
        self.client, self.secret = "web & more", "p%ss word"
        self.claims: dict[str, object] = {"sub": "ann"}
        self.metadata: dict[str, object] = {}
        self.methods = ["client_secret_basic"]
        self.error = ""
        self.key = KEY
        self._codes: dict[str, dict[str, str]] = {}

    def answer(self, method: str, target: str, headers: Any, body: str) -> tuple[int, dict[str, str], object]:
        """Status, headers and JSON of an answer."""
        parts = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        match method, parts.path:
            case "GET", "/.well-known/openid-configuration":
                return 200, {}, self._described()
            case "GET", "/keys":
                entry = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
                return 200, {}, {"keys": [{**entry, "kid": "one", "use": "sig", "alg": "RS256"}]}
            case "GET", "/authorize":
                return 302, {"Location": self._back(query)}, {}
            case "POST", "/token":
                form = {name: values[0] for name, values in parse_qs(body).items()}
                return self._token(form, headers.get("Authorization", ""))
        return 404, {}, {"error": f"no {target}"}

    def _described(self) -> dict[str, object]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint_auth_methods_supported": self.methods,
            **self.metadata,
        }

    def _back(self, query: dict[str, str]) -> str:
        assert query["client_id"] == self.client
        assert query["response_type"] == "code"
        assert query["code_challenge_method"] == "S256"
        code = f"code{len(self._codes)}"
        self._codes[code] = query
        answer = {"error": self.error} if self.error else {"code": code, "iss": self.url}
        return f"{query['redirect_uri']}?{urlencode({**answer, 'state': query['state']})}"

    def _token(self, form: dict[str, str], authorization: str) -> tuple[int, dict[str, str], object]:
        if self._client_of(form, authorization) != (self.client, self.secret):
            return 401, {}, {"error": "invalid_client"}
        asked = self._codes.pop(form.get("code", ""), None)
        if asked is None or form["redirect_uri"] != asked["redirect_uri"]:
            return 400, {}, {"error": "invalid_grant"}
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            return 400, {}, {"error": "invalid_grant", "error_description": "the verifier is wrong"}
        claims = {
            "iss": self.url,
            "aud": self.client,
            "exp": time.time() + 60,
            "nonce": asked["nonce"],
            "scope": asked["scope"],
            **self.claims,
        }
        return 200, {}, {"id_token": jwt.encode(claims, self.key, "RS256", {"kid": "one"}), "token_type": "Bearer"}

    def _client_of(self, form: dict[str, str], authorization: str) -> tuple[str, str]:
        if authorization.startswith("Basic ") and "client_secret_basic" in self.methods:
            name, _, secret = base64.b64decode(authorization[6:]).decode().partition(":")
            return unquote_plus(name), unquote_plus(secret)
        return form.get("client_id", ""), form.get("client_secret", "")


@contextmanager
def identity_provider(folder: Path) -> Iterator[IdentityProvider]:
    """A provider that runs until the end of the block.

    Args:
        folder: for the certificate of its authority.
    """
    authority = trustme.CA()
    ca_file = folder / "ca.pem"
    authority.cert_pem.write_to_path(str(ca_file))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, body: str) -> None:
            status, headers, content = provider.answer(self.command, self.path, self.headers, body)
            data = json.dumps(content).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(data))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    provider = IdentityProvider(f"https://127.0.0.1:{server.server_port}", ca_file)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
