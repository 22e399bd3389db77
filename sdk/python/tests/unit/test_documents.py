"""The Python in documents, checked against the types of this package."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from examples import ROOT

BLOCK = re.compile(r"(?:^ *<!-- (\w+)(?:: (.+?))? -->\n)?^( *)```python\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
SDK = Path(__file__).resolve().parents[2]


def programs(document: Path) -> dict[str, str]:
    """Return the programs of a document: each file, and the other blocks together, as one interpreter runs them."""
    found: dict[str, list[str]] = {}
    for mark, of, indent, text in BLOCK.findall(document.read_text()):
        name = of if mark == "file" else "blocks.py"
        found.setdefault(name, []).append(in_function(re.sub(f"^{indent}", "", text, flags=re.MULTILINE)))
    return {name: "\n".join(texts) for name, texts in found.items()}


def in_function(text: str) -> str:
    """Return a block that awaits outside of a function, which notebooks allow, as a function."""
    try:
        compile(text, "block", "exec")
    except SyntaxError:
        return "async def main() -> None:\n" + textwrap.indent(text, "    ")
    return text


def documents() -> list[Path]:
    # The reference shows signatures, which are no programs.
    pages = [ROOT / "README.md", SDK / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if page.name != "sdk-reference.md" and page.parent.name != "decisions"]


def check(folder: Path, files: list[Path]) -> str:
    """Return what mypy finds. Packages that are not installed here are not checked, and names may be used again."""
    command = [sys.executable, "-m", "mypy", "--config-file=", "--ignore-missing-imports", "--check-untyped-defs"]
    command += ["--allow-redefinition", "--no-error-summary"]
    command += [f"--cache-dir={SDK / '.mypy_cache' / 'documents'}", "--scripts-are-modules", *map(str, files)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True).stdout


def test_the_python_in_documents_fits_the_package(tmp_path: Path) -> None:
    files = []
    for document in documents():
        for name, text in programs(document).items():
            path = tmp_path / re.sub(r"[^\w.]", "_", f"{document.relative_to(ROOT).with_suffix('')}__{name}")
            path.write_text(text)
            files.append(path)
    assert len(files) > 10
    assert check(tmp_path, files) == ""


def test_a_wrong_argument_is_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from openshift_ai_sdk.training import MPIJob\n\nMPIJob('a', wrkers=2)\nMPIJob('a').get_log()\n")
    found = check(tmp_path, [wrong])
    assert "wrkers" in found
    assert "get_log" in found
