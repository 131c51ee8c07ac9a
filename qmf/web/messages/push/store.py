"""Durable registrations in a folder, a file for each. What survives: a registration whose creation was answered, until
its deletion was; files are written aside, synced, and then take their names. Only their owner may read them, since they
have passwords.

A file may also be written by hand, with an ``id`` and a ``destination``, or for topics a ``topic``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qmf._atomic_files import PRIVATE, replace_file, sync_folder
from qmf.errors import QmfError
from qmf.web.messages.push.registration import (
    PushRegistration,
    RegistrationError,
    read_registration,
    write_registration,
)


class PushStoreError(QmfError):
    """The folder cannot be used; names it and the reason."""


class PushStore:
    """The registrations of a folder."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if there is none.

        Raises:
            PushStoreError: it cannot be used.
        """
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise PushStoreError(f"{folder} cannot be used for push registrations: {error.strerror}") from error

    def read(self) -> Iterator[PushRegistration]:
        """All registrations.

        Raises:
            PushStoreError: a file cannot be read, or is no registration; names it.
        """
        for path in sorted(self._folder.glob("*.xml")):
            try:
                found = read_registration(path.read_bytes(), path.stem)
            except OSError as error:
                raise PushStoreError(f"{path} cannot be read: {error.strerror}") from error
            except RegistrationError as error:
                raise PushStoreError(f"{path}: {error}") from error
            if found.id != path.stem:
                raise PushStoreError(f"{path}: the id {found.id!r} must be the name of the file, without .xml")
            yield found

    def write(self, registration: PushRegistration) -> None:
        """Keep a registration.

        Raises:
            PushStoreError: it cannot be written.
        """
        try:
            content = write_registration(registration, secrets=True)
            replace_file(self._path(registration), content, mode=PRIVATE, sync=True)
        except (OSError, ValueError) as error:  # the latter: a name that XML has no form for
            raise PushStoreError(
                f"{self._folder}: registration {registration.id} cannot be written: {error}"
            ) from error

    def delete(self, registration: PushRegistration) -> None:
        """Forget a registration; nothing happens if it is not there.

        Raises:
            PushStoreError: it cannot be deleted.
        """
        try:
            self._path(registration).unlink(missing_ok=True)
            sync_folder(self._folder)
        except OSError as error:
            raise PushStoreError(
                f"{self._folder}: registration {registration.id} cannot be deleted: {error}"
            ) from error

    def _path(self, registration: PushRegistration) -> Path:
        return self._folder / f"{registration.id}.xml"
