"""The examples in documents, as users would copy them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
# They are made from the pages by tools/generate_notebooks.py.
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def python_in(document: str, heading: str = "") -> str:
    """Return the first Python block of a document, behind a heading if one is named."""
    text = (ROOT / document).read_text()
    behind = text[text.index(f"## {heading}\n") :] if heading else text
    block = re.search(r"```python\n(.*?)```", behind, re.DOTALL)
    assert block is not None, f"{document} has no Python block behind {heading!r}"
    return block[1]
