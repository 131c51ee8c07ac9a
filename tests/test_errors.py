"""The sentences that users read, one row per kind of error."""

from __future__ import annotations

import pickle

import pytest

from qmf import errors

SENTENCES: list[tuple[errors.QmfError, str]] = [
    (
        errors.SchemaError([errors.SchemaProblem("a.xml", 3, "bad"), errors.SchemaProblem("a.xml", 9, "worse")]),
        "a.xml:3: bad\na.xml:9: worse",
    ),
    (
        errors.ConstraintError("filesystem.threshold", "uint8", 300, "must be 0 to 255"),
        "filesystem.threshold (uint8): must be 0 to 255, not 300",
    ),
    (
        errors.ConstraintError("x.y", "sstr", "a" * 100, "must be at most 3 bytes"),
        f"x.y (sstr): must be at most 3 bytes, not '{'a' * 39}...{'a' * 16}'",
    ),
    (
        errors.NotFoundError("class", "filesytem", ["filesystem", "process"]),
        "no class 'filesytem'; did you mean filesystem?",
    ),
    (errors.NotFoundError("class", "zzz", ["filesystem"]), "no class 'zzz'"),
    (errors.NotFoundError("class", "Fil", ["memory", "filesystem"]), "no class 'Fil'; did you mean filesystem?"),
    (errors.NotFoundError("class", "", ["memory"]), "no class ''"),
    (errors.RemoteError("UnknownMethod", 2, "a:b:c"), "agent a:b:c: UnknownMethod (code 2)"),
    (errors.RemoteError("jammed"), "jammed"),
    (errors.ConnectError("amqp://h:1", "refused"), "cannot connect to amqp://h:1: refused"),
    (errors.AuthenticationError("amqp://h:1", "bad password"), "cannot connect to amqp://h:1: bad password"),
    (errors.DisconnectedError("amqp://h:1", "closed by peer"), "not connected to amqp://h:1: closed by peer"),
    (
        errors.LinkError("q", "amqp:not-found", "no such node"),
        "link to 'q' refused by the broker with amqp:not-found: no such node",
    ),
    (errors.LinkError("", "amqp:not-allowed", ""), "sending link refused by the broker with amqp:not-allowed"),
    (errors.RequestTimeout("method echo", "a:b:c", 2.5), "no answer to method echo from agent a:b:c within 2.5 s"),
    (errors.RequestTimeout("locate", None, 10), "no answer to locate within 10 s"),
]


@pytest.mark.parametrize(("error", "sentence"), SENTENCES)
def test_sentence(error: errors.QmfError, sentence: str) -> None:
    assert str(error) == sentence


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (errors.ConstraintError("w", "uint8", 1, "r"), ValueError),
        (errors.NotFoundError("class", "x"), LookupError),
        (errors.RequestTimeout("w", None, 1), TimeoutError),
    ],
)
def test_builtin_kind(error: errors.QmfError, builtin: type[Exception]) -> None:
    assert isinstance(error, builtin)
    assert isinstance(error, errors.QmfError)


def test_pickle_keeps_the_facts() -> None:
    error = errors.LinkError("q", "amqp:not-found", "no such node")
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.address, copy.condition, copy.description) == ("q", "amqp:not-found", "no such node")
