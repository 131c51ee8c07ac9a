"""What is installed: a bill of materials (CycloneDX, JSON), and known vulnerabilities of the libraries by pip-audit.

    python -m scripts.supply_chain [--output FILE] [--seconds N] [--strict]

The vulnerabilities are asked of a service. Where it cannot be reached in time, that is a warning, and no failure.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import subprocess
import sys
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

#: Seconds that the service has.
SECONDS = 60
OUTPUT = Path("build/bill-of-materials.json")


def components() -> list[dict[str, Any]]:
    """The installed distributions, by name."""
    found: dict[str, dict[str, Any]] = {}
    for distribution in importlib.metadata.distributions():
        name = (distribution.metadata.get_all("Name") or [""])[0]
        if not name or name.lower() == "qmf":
            continue
        key = name.lower().replace("_", "-")
        component: dict[str, Any] = {
            "type": "library",
            "bom-ref": f"pkg:pypi/{key}@{distribution.version}",
            "name": name,
            "version": distribution.version,
            "purl": f"pkg:pypi/{key}@{distribution.version}",
        }
        if licence := _licence(distribution.metadata):
            component["licenses"] = [{"license": {"name": licence}}]
        found[key] = component
    return [found[key] for key in sorted(found)]


def _licence(metadata: Any) -> str:
    classifiers = [
        text.rpartition(" :: ")[2] for text in metadata.get_all("Classifier") or () if text.startswith("License ::")
    ]
    # `get`: in the place of Python's module, `importlib_metadata` may answer, whose fields raise KeyError.
    short = (metadata.get("License") or "").partition("\n")[0]
    return str(metadata.get("License-Expression") or "; ".join(classifiers) or short[:100])


def bill_of_materials(version: str) -> dict[str, Any]:
    """The bill, of this project's version."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "serialNumber": f"urn:uuid:{uuid.uuid4()}",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "qmf", "version": version}},
        "components": components(),
    }


def vulnerabilities(report: str) -> Iterator[str]:
    """The lines of a report of pip-audit as JSON.

    Raises:
        ValueError: it is none.
    """
    for dependency in json.loads(report)["dependencies"]:
        for found in dependency.get("vulns", ()):
            fixed = ", ".join(found.get("fix_versions", ())) or "no version"
            yield f"{dependency['name']} {dependency['version']}: {found['id']}, corrected in {fixed}"


def audit(seconds: float) -> list[str] | None:
    """The known vulnerabilities of what is installed; None, after a warning, where they cannot be learned."""
    command = [sys.executable, "-m", "pip_audit", "--skip-editable", "--progress-spinner", "off", "--format", "json"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        return list(vulnerabilities(done.stdout))
    except subprocess.TimeoutExpired:
        reason = f"no answer within {seconds:g} s"
    except (ValueError, KeyError):
        reason = (done.stderr.strip().splitlines() or ["no answer"])[-1][:200]
    print(f"warning: known vulnerabilities were not looked up: {reason}", file=sys.stderr)
    return None


def main(argv: Sequence[str] | None = None) -> int:
    """Write the bill, and look up vulnerabilities; 1 if some are known and `--strict` is given."""
    parser = argparse.ArgumentParser(description="Bill of materials, and known vulnerabilities, of what is installed.")
    parser.add_argument("--output", type=Path, default=OUTPUT, metavar="FILE", help="the bill (%(default)s)")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, metavar="N", help="time for the service (%(default)s)"
    )
    parser.add_argument("--strict", action="store_true", help="exit with 1 for a known vulnerability")
    options = parser.parse_args(argv)
    bill = bill_of_materials(importlib.metadata.version("qmf"))
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
    print(f"{options.output}: {len(bill['components'])} libraries")
    found = audit(options.seconds)
    for line in found or ():
        print(f"warning: known vulnerability: {line}", file=sys.stderr)
    if found is not None:
        print(f"known vulnerabilities: {len(found)}")
    return 1 if found and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
