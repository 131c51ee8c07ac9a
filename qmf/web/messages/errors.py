"""Errors of the broker and of consumers as problems."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping

from qmf.messaging import (
    AddressError,
    AssertionFailed,
    ContentError,
    InvalidOption,
    LinkError,
    MessagingError,
    NotFound,
    SendError,
    TargetCapacityExceeded,
    Timeout,
    UnauthorizedAccess,
)
from qmf.messaging.exceptions import ConnectionError as MessagingConnectionError
from qmf.messaging.exceptions import SessionError
from qmf.web.messages.consumer_ids import OptionsTooLong
from qmf.web.messages.pull_consumers import ConsumerConflict, ConsumerGone, TooManyConsumers
from qmf.web.problems import Problem

#: Seconds after which a client may try again.
RETRY_AFTER = 5

_RETRY = {"Retry-After": str(RETRY_AFTER)}


def problem_for(error: MessagingError | Timeout) -> Problem:
    """The problem for an error of the messaging API."""
    if isinstance(error, Timeout):
        return Problem(503, f"the broker does not answer: {error}", headers=_RETRY)
    status, headers = 502, None
    match error:
        case NotFound() | AssertionFailed():
            status = 404
        case InvalidOption():
            status = 501
        case UnauthorizedAccess():
            status = 403
        case LinkError(code="amqp:resource-locked"):
            # Most often by the connection of a server that was lost, which the broker has not noticed yet.
            status, headers = 503, _RETRY
        case TargetCapacityExceeded() | SessionError() | MessagingConnectionError():
            status, headers = 503, _RETRY
        case ContentError():
            status = 400
        case AddressError():
            status = {"amqp:invalid-field": 400, "amqp:not-implemented": 501}.get(error.code or "", 409)
        case SendError():
            status = 502
    more = {} if error.code is None else {"code": error.code}
    return Problem(status, str(error), headers=headers, **more)


@contextlib.contextmanager
def as_problems(factory: Mapping[str, str] | None = None) -> Iterator[None]:
    """Raise errors inside the block as problems.

    Args:
        factory: the header that names where to create a consumer again, where the block needs one.
    """
    try:
        yield
    except (MessagingError, Timeout) as error:
        raise problem_for(error) from error
    except TooManyConsumers as error:
        raise Problem(503, str(error), headers=_RETRY) from error
    except ConsumerConflict as error:
        raise Problem(409, str(error)) from error
    except ConsumerGone as error:
        raise Problem(410, str(error), headers=factory) from error
    except OptionsTooLong as error:
        raise Problem(400, str(error)) from error
