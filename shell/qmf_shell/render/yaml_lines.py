"""Results as YAML: one document per object, with the values of `json_lines`. ASCII only, as there."""

from __future__ import annotations

import json
from collections.abc import Iterator

import yaml

from qmf_shell.render.json_lines import result_values
from qmf_shell.results.result import Result

#: Written in C where the library was built so: ten times as fast.
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def yaml_lines(result: Result) -> Iterator[str]:
    """The lines of a result, without their ends."""
    for value in result_values(result):
        yield from yaml_document(value)


def yaml_document(value: object) -> Iterator[str]:
    """The lines of one value."""
    # Values that YAML has no plain form for, such as UUIDs, become the texts that they are in JSON.
    plain = json.loads(json.dumps(value, default=str, allow_nan=False))
    yield "---"
    yield from yaml.dump(plain, Dumper=_Dumper, sort_keys=False, width=1000).splitlines()
