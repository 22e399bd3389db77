"""Write the runtimes that the project ships into the package, from config/runtimes/shipped.yaml.

Usage: generate_runtimes.py [--check]. With --check nothing is written, and the exit status is 1 if the file would
change.

The command line and the dashboard embed the same file, so that all of them create runtimes from the same ones.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import yaml
from _target import write

ROOT = Path(__file__).resolve().parents[3]
SOURCE = ROOT / "config" / "runtimes" / "shipped.yaml"
TARGET = ROOT.joinpath("sdk/python/src/openshift_ai_sdk/training/_generated/shipped_runtimes.json")


def generate() -> str:
    """Return the runtimes by their names, one in a line."""
    runtimes = {item["metadata"]["name"]: item for item in yaml.safe_load_all(SOURCE.read_text())}
    lines = [f"{json.dumps(name)}: {json.dumps(runtimes[name], sort_keys=True)}" for name in sorted(runtimes)]
    return "{\n" + ",\n".join(lines) + "\n}\n"


if __name__ == "__main__":
    sys.exit(write(TARGET, generate()))
