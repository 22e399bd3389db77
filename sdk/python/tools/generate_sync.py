"""Write the synchronous face of the package, client.py, from the asynchronous one, aio.py.

Usage: generate_sync.py [--check]. With --check nothing is written, and the exit status is 1 if the file would change.

Both call the same core; the one with await, the other without. Nothing is decided in a face.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from _target import write

FOLDER = Path(__file__).resolve().parents[1] / "src" / "openshift_ai_sdk" / "training"

HEAD = '''"""Run MPI jobs: the synchronous face.

Generated from aio.py by tools/generate_sync.py; do not edit it. Change aio.py, and run `make sdk-generate`.
"""
'''

REPLACEMENTS = [
    (r"\A\"\"\".*?\"\"\"\n", HEAD),
    (r"\basync (def|with|for) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\b__a(enter|exit)__", r"__\1__"),
    (r"\bAsyncIterator\b", "Iterator"),
    (r"\b_driver_asyncio import AsyncDriver\b", "_driver_blocking import BlockingDriver"),
    (r"\bAsyncDriver\b", "BlockingDriver"),
    (r"import Iterator, Callable, Mapping, Sequence", "import Callable, Iterator, Mapping, Sequence"),
]


def synchronous(text: str) -> str:
    """Return a module without asyncio."""
    for pattern, replacement in REPLACEMENTS:
        text = re.sub(pattern, replacement, text, flags=re.DOTALL)
    return text


if __name__ == "__main__":
    sys.exit(write(FOLDER / "client.py", synchronous((FOLDER / "aio.py").read_text())))
