"""What the tools that write a file have in common."""

from __future__ import annotations

import sys
from pathlib import Path


def write(target: Path, text: str) -> int:
    """Write a generated file if it changes, and return the exit status.

    With --check nothing is written, and the exit status is 1 if the file would change.
    """
    if target.exists() and target.read_text() == text:
        return 0
    if sys.argv[1:] == ["--check"]:
        print(f"out of date: {target.name}; run make sdk-generate", file=sys.stderr)
        return 1
    target.write_text(text)
    return 0
