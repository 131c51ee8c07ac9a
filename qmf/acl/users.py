"""Names of users in rules: ``${user}`` and its like."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.acl.words import DOMAIN, USER, USER_DOMAIN


def replace_placeholders(text: str, user: str) -> str:
    """A text of a rule with its placeholders replaced by a user."""
    name, domain, both = _forms(user)
    return text.replace(USER, name).replace(DOMAIN, domain).replace(USER_DOMAIN, both)


def texts_of_user(user: str) -> Sequence[tuple[str, str]]:
    """What stands in keys for a user, each with its placeholder, in the order in which they are restored."""
    name, domain, both = _forms(user)
    return [found for found in ((both, USER_DOMAIN), (name, USER), (domain, DOMAIN)) if found[0]]


def restore_placeholders(key: str, texts: Sequence[tuple[str, str]]) -> str:
    """A routing key with a user's names replaced by placeholders, as a rule that has these is compared with it.

    Args:
        key: of a message.
        texts: `texts_of_user`.
    """
    for text, placeholder in texts:
        key = key.replace(text, placeholder)
    return key


def _forms(user: str) -> tuple[str, str, str]:
    """The user's name, domain, and both together, as they stand in names and keys."""
    name, _, domain = user.partition("@")
    return _plain(name), _plain(domain), _plain(user)


def _plain(text: str) -> str:
    return text.replace("@", "_").replace(".", "_")
