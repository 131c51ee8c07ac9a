"""Signatures of methods: arguments and results are checked against the schema, by checks that are made once."""

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
        method: declaration in the schema.
        where: ``Class.method``, for errors.
    """

    __slots__ = ("_inputs", "_names", "_outputs", "method", "where")

    def __init__(self, schema: ClassSchema, method: Method) -> None:
        self.method = method
        self.where = f"{schema.name}.{method.name}"
        self._inputs = [(item, argument_check(item, self.where)) for item in method.inputs]
        self._names = frozenset(item.name for item in method.inputs)
        self._outputs = [(item, argument_check(item, self.where)) for item in method.outputs]

    def arguments(self, given: Mapping[str, object]) -> list[object]:
        """The inputs in schema order, as the method gets them.

        A map that is missing is an empty one: Apache's programs leave out maps of options and filters.

        Raises:
            RequestRefused: an argument is unknown, missing or does not fit.
        """
        unknown = sorted(given.keys() - self._names)
        if unknown:
            raise invalid_parameter(f"{self.where} has no input argument {unknown[0]!r}")
        return [self._argument(item, check, given.get(item.name)) for item, check in self._inputs]

    def _argument(self, item: Argument, check: Check, value: object) -> object:
        if value is None:
            if item.default is None and item.type.name == "map":
                return {}
            if item.default is None:
                raise invalid_parameter(f"argument {item.name!r} of {self.where} ({item.type.name}) is missing")
            return item.default
        try:
            return check(to_schema_type(item.type, value, f"argument {item.name!r} of {self.where}"))
        except ConstraintError as error:
            raise invalid_parameter(str(error)) from error

    def result(self, result: object) -> dict[str, object]:
        """The outputs for the wire. Wrong outputs are an error of the agent's program, and are logged.

        Raises:
            RequestRefused: an output does not fit.
        """
        if not self._outputs and result is None:
            return {}
        if not isinstance(result, Result):
            expected = "a Result" if self._outputs else "None"
            text = f"{self.where} returned {type(result).__name__} instead of {expected}"
        else:
            try:
                return self._to_outputs(result)
            except (ConstraintError, AttributeError) as error:
                text = f"{self.where} returned an invalid result: {error}"
        _log.error("%s", text)
        raise RequestRefused(ErrorCode.EXCEPTION, text)

    def _to_outputs(self, result: Result) -> dict[str, object]:
        outputs = {}
        cls = type(result)
        for item, check in self._outputs:
            value = typed_argument(item, check(getattr(result, python_name(cls, item.name))))
            if value is not None:
                outputs[item.name] = value
        return outputs


def to_schema_type(type: QmfType, value: object, where: str) -> object:
    """A value of a request as the type in the schema.

    Raises:
        ConstraintError: it is of another type.
    """
    try:
        return from_wire(type, value)
    except ProtocolError as error:
        raise ConstraintError(where, type.name, value, f"must be a valid {type.name}") from error


def invalid_parameter(text: str) -> RequestRefused:
    """The error for invalid arguments."""
    return RequestRefused(ErrorCode.INVALID_PARAMETER, text)
