"""What a method takes and gives: arguments and results checked against the schema, by checks that are made once."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from qmf.agent.layout.checks import Check
from qmf.agent.model.arguments import Result, argument_check, python_name, typed_argument
from qmf.agent.request_errors import RequestRefused
from qmf.errors import ConstraintError, ProtocolError
from qmf.protocol import ErrorCode, from_wire
from qmf.schema import Argument, ClassSchema, Method, QmfType

_log = logging.getLogger("qmf.agent")


class MethodSignature:
    """One method of a class.

    Attributes:
        method: its declaration.
        where: ``Class.method``, as errors say it.
    """

    __slots__ = ("_inputs", "_names", "_outputs", "method", "where")

    def __init__(self, schema: ClassSchema, method: Method) -> None:
        self.method = method
        self.where = f"{schema.name}.{method.name}"
        self._inputs = [(item, argument_check(item, self.where)) for item in method.inputs]
        self._names = frozenset(item.name for item in method.inputs)
        self._outputs = [(item, argument_check(item, self.where)) for item in method.outputs]

    def arguments(self, given: Mapping[str, object]) -> list[object]:
        """Inputs in the order of the schema, as the method's author gets them.

        Raises:
            RequestRefused: one is unknown, missing or does not fit.
        """
        unknown = sorted(given.keys() - self._names)
        if unknown:
            raise invalid(f"{self.where} has no input argument {unknown[0]!r}")
        return [self._argument(item, check, given.get(item.name)) for item, check in self._inputs]

    def _argument(self, item: Argument, check: Check, value: object) -> object:
        if value is None:
            if item.default is None:
                raise invalid(f"argument {item.name!r} of {self.where} ({item.type.name}) is missing")
            return item.default
        try:
            return check(received(item.type, value, f"argument {item.name!r} of {self.where}"))
        except ConstraintError as error:
            raise invalid(str(error)) from error

    def result(self, result: object) -> dict[str, object]:
        """Outputs for the wire. What does not fit is a fault of the agent's program, and is logged there.

        Raises:
            RequestRefused: it does not fit.
        """
        if not self._outputs and result is None:
            return {}
        if not isinstance(result, Result):
            wanted = "a Result" if self._outputs else "None"
            text = f"{self.where} returned {type(result).__name__} instead of {wanted}"
        else:
            try:
                return self._typed(result)
            except (ConstraintError, AttributeError) as error:
                text = f"{self.where} returned an invalid result: {error}"
        _log.error("%s", text)
        raise RequestRefused(ErrorCode.EXCEPTION, text)

    def _typed(self, result: Result) -> dict[str, object]:
        outputs = {}
        cls = type(result)
        for item, check in self._outputs:
            value = typed_argument(item, check(getattr(result, python_name(cls, item.name))))
            if value is not None:
                outputs[item.name] = value
        return outputs


def received(type: QmfType, value: object, where: str) -> object:
    """A value of a request as the type that the schema says.

    Raises:
        ConstraintError: it is of another kind.
    """
    try:
        return from_wire(type, value)
    except ProtocolError as error:
        raise ConstraintError(where, type.name, value, f"must be a valid {type.name}") from error


def invalid(text: str) -> RequestRefused:
    """The refusal of arguments."""
    return RequestRefused(ErrorCode.INVALID_PARAMETER, text)
