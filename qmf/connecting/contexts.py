"""Named contexts: how to connect to the brokers of one site, as tables of the settings file.

::

    context = "lab"

    [contexts.lab]
    url = "amqps://mq1.lab"
    user = "ann"
    ca = "lab-ca.pem"

Paths are relative to the file. A password is never part of a context, only where it is: a file or the keyring.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from qmf.bus.url import UrlError, parse_url
from qmf.connecting.tls import NO_FILES, TlsFiles
from qmf.errors import CallerError, NotFoundError

if TYPE_CHECKING:
    from qmf._toml import TomlFile

#: Colours of a prompt, as terminals name them.
COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")

#: The environment variable that names the context to use.
CONTEXT_VARIABLE = "QMF_CONTEXT"


class ContextError(CallerError):
    """A context in the settings file is invalid; the message names file and line, the context and the setting."""


@attrs.frozen(kw_only=True)
class ConnectionContext:
    """How to connect to the brokers of one site.

    Attributes:
        name: what `--context` names.
        urls: of its brokers, without passwords; at least one.
        user: whom to log in as; None: the user of each URL, or nobody.
        password_file: a file whose first line is the password.
        token_file: a file whose first line is an access token to log in with.
        keyring: the password is in the user's keyring.
        tls: files of TLS.
        domain: QMF domain.
        colour: of the shell's prompt, one of `COLOURS`; None for the usual one.
        lake: folder in which these brokers are recorded; None where they are not.
    """

    name: str
    urls: tuple[str, ...]
    user: str | None = None
    password_file: Path | None = None
    token_file: Path | None = None
    keyring: bool = False
    tls: TlsFiles = NO_FILES
    domain: str | None = None
    colour: str | None = None
    lake: str | None = None


@attrs.frozen
class Contexts:
    """The contexts of a settings file.

    Attributes:
        by_name: all of them.
        default: name of the one to use when the command line names neither a context nor a broker; or None.
    """

    by_name: Mapping[str, ConnectionContext] = attrs.field(factory=dict)
    default: str | None = None

    def find(self, name: str) -> ConnectionContext:
        """The context called `name`.

        Raises:
            NotFoundError: there is none; has similar names.
        """
        context = self.by_name.get(name)
        if context is None:
            raise NotFoundError("context", name, self.by_name)
        return context


#: Of a user without a settings file.
NO_CONTEXTS = Contexts()


def read_contexts(path: Path | None) -> Contexts:
    """The contexts in a settings file; none if there is no file. Other settings are left to the shell.

    Raises:
        ContextError: the file cannot be read, is not TOML, or a context is invalid.
    """
    if path is None or not path.exists():
        return NO_CONTEXTS
    # Imported here: most users have no such file.
    from qmf._toml import read_toml

    toml = read_toml(path, ContextError)
    return NO_CONTEXTS if toml is None else contexts_in(toml)


def contexts_in(toml: TomlFile) -> Contexts:
    """The contexts in a settings file: its keys `contexts` and `context`.

    Raises:
        CallerError: of the file's class of errors: a context is invalid, or `context` names none.
    """
    tables = toml.content.get("contexts", {})
    with toml.at("contexts"):
        if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
            raise ContextError("contexts must be tables: [contexts.NAME]")
    contexts = Contexts({name: _context(name, table, toml) for name, table in tables.items()})
    default = toml.content.get("context")
    if default is None:
        return contexts
    with toml.at("context"):
        if not isinstance(default, str):
            raise ContextError("context must be the name of a context")
        contexts.find(default)
    return attrs.evolve(contexts, default=default)


def _context(name: str, table: Mapping[str, object], toml: TomlFile) -> ConnectionContext:
    where = f"context {name}"
    values: dict[str, Any] = {}
    for key, value in table.items():
        with toml.at("contexts", name, key):
            if key == "password":
                raise ContextError(
                    f"{where}: a password does not belong into this file; use password-file, token-file or keyring"
                )
            if key not in _READERS:
                raise ContextError(f"{where}: {NotFoundError('setting', key, _READERS)}")
            values[key.replace("-", "_")] = _READERS[key](f"{where}: {key}", value, toml.path.parent)
    with toml.at("contexts", name):
        if "url" not in values:
            raise ContextError(f"{where}: url is missing")
    tls = TlsFiles(**{key: values.pop(key) for key in ("ca", "cert", "key", "insecure") if key in values})
    return ConnectionContext(name=name, urls=values.pop("url"), tls=tls, **values)


def _text(where: str, value: object, _: Path) -> str:
    if not isinstance(value, str) or not value:
        raise ContextError(f"{where} must be a text")
    return value


def _path(where: str, value: object, folder: Path) -> Path:
    return folder / Path(_text(where, value, folder)).expanduser()


def _folder(where: str, value: object, folder: Path) -> str:
    text = _text(where, value, folder)
    return text if "://" in text else str(_path(where, value, folder))


def _switch(where: str, value: object, _: Path) -> bool:
    if not isinstance(value, bool):
        raise ContextError(f"{where} must be true or false")
    return value


def _colour(where: str, value: object, _: Path) -> str:
    if not isinstance(value, str) or value not in COLOURS:
        raise ContextError(f"{where} must be {', '.join(COLOURS[:-1])} or {COLOURS[-1]}, not {value!r}")
    return value


def _urls(where: str, value: object, folder: Path) -> tuple[str, ...]:
    given = value if isinstance(value, list) else [value]
    if not given:
        raise ContextError(f"{where} is empty")
    texts = tuple(_text(where, item, folder) for item in given)
    for text in texts:
        try:
            url = parse_url(text)
        except UrlError as error:
            raise ContextError(f"{where}: {error}") from None
        if url.password is not None:
            raise ContextError(
                f"{where}: a password does not belong into this file; use password-file, token-file or keyring"
            )
    return texts


_READERS: Mapping[str, Callable[[str, object, Path], Any]] = {
    "url": _urls,
    "user": _text,
    "password-file": _path,
    "token-file": _path,
    "keyring": _switch,
    "ca": _path,
    "cert": _path,
    "key": _path,
    "insecure": _switch,
    "domain": _text,
    "colour": _colour,
    "lake": _folder,
}
