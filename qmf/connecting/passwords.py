"""Where passwords come from: a file, the environment, the user's keyring, or a question on the terminal.

Rule: a password is returned to the caller alone. It is in no error, no log and no argument of a process.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from qmf._extras import install_hint
from qmf.bus.url import BusUrl
from qmf.connecting.secret_files import PasswordError, read_secret

#: The environment variable with the password.
PASSWORD_VARIABLE = "QMF_PASSWORD"

#: The service under which a keyring keeps passwords.
KEYRING_SERVICE = "qmf"


def ask_on_terminal(question: str) -> str | None:
    """Ask without showing what is typed; None if there is no terminal to ask on."""
    if sys.stdin is None or not sys.stdin.isatty():
        return None
    try:
        return getpass.getpass(question)
    except EOFError:
        return None


@attrs.define
class PasswordFinder:
    """Finds the passwords of one program; a password that was typed is asked for once for each user.

    Attributes:
        environ: the environment.
        file: a file whose first line is the password, or None.
        keyring: look into the user's keyring.
        always_ask: ask before any other source.
        ask: asks the user; returns None if there is nobody to ask.
        warn: takes a line about a password file that others may read.
    """

    environ: Mapping[str, str]
    file: Path | None = None
    keyring: bool = False
    always_ask: bool = False
    ask: Callable[[str], str | None] = ask_on_terminal
    warn: Callable[[str], None] = lambda _: None
    _typed: dict[str, str] = attrs.field(factory=dict, init=False, repr=False)

    def find(self, url: BusUrl) -> str:
        """The password of the user of `url`: of the file, the environment, the keyring, or typed, in this order.

        Raises:
            PasswordError: there is none, or a source cannot be read.
        """
        user = url.username
        assert user is not None
        if self.always_ask:
            return self._ask(url, user)
        if self.file is not None:
            return read_secret(self.file, "password", self.warn)
        if password := self.environ.get(PASSWORD_VARIABLE):
            return password
        if self.keyring:
            return self._from_keyring(url, user)
        return self._ask(url, user)

    def _ask(self, url: BusUrl, user: str) -> str:
        if user not in self._typed:
            typed = self.ask(f"Password of {user} at {attrs.evolve(url, username=None)}: ")
            if typed is None:
                raise PasswordError(
                    f"no password for user {user!r}: set {PASSWORD_VARIABLE}, or use --password-file or --keyring"
                )
            self._typed[user] = typed
        return self._typed[user]

    def _from_keyring(self, url: BusUrl, user: str) -> str:
        try:
            import keyring
            from keyring.errors import KeyringError
        except ImportError:
            raise PasswordError(f"--keyring needs the library keyring: {install_hint('keyring')}") from None
        name = keyring_name(url)
        try:
            password = keyring.get_password(KEYRING_SERVICE, name)
        except KeyringError as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            raise PasswordError(f"cannot read the keyring: {reason}") from None
        if password is None:
            raise PasswordError(
                f"the keyring has no password of {user}: add it with: keyring set {KEYRING_SERVICE} {name}"
            )
        return password


def keyring_name(url: BusUrl) -> str:
    """The name under which a keyring has the password of the user of `url`: ``user@host:port``."""
    return str(attrs.evolve(url, tls=False)).removeprefix("amqp://")
