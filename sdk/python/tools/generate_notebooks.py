"""Write docs/notebooks from the pages of the documentation.

A page, or a section of it, is a notebook if it has a comment ``notebook: NAME; samples: IMAGES; needs TEXT``. Text
becomes cells of text, and blocks of Python become cells of code. Outputs and what is typed in a terminal are left
out. So are sections with the comment ``not in the notebook``.

Usage: generate_notebooks.py [--check]. With --check nothing is written, and the exit status is 1 if a file would
change.
"""

from __future__ import annotations

import json
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from _target import write

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
NOTEBOOKS = DOCS / "notebooks"
REPOSITORY = "https://github.com/opendatahub-io/mpijob/blob/main/"

MARK = re.compile(r"<!-- notebook: ([\w-]+); samples: ([\w, ]+); (needs .+?) -->\n\n?")
LEFT_OUT = "<!-- not in the notebook -->"
COMMENT = re.compile(r"^ *<!-- .+? -->\n+", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^(#+) (.+)$", re.MULTILINE)
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]*)(#[^)\s]*)?\)")


def sections(text: str) -> list[tuple[int, str]]:
    """Return the sections of a page with the levels of their headings, in order."""
    code = [found.span() for found in FENCE.finditer(text)]
    starts = [found for found in HEADING.finditer(text) if not any(start < found.start() < end for start, end in code)]
    ends = [*(found.start() for found in starts[1:]), len(text)]
    return [(len(found[1]), text[found.start() : end]) for found, end in zip(starts, ends, strict=True)]


def chosen(text: str) -> str:
    """Return the part of a page that is in the notebook: the section with the mark and those below it."""
    found, level = [], 0
    for depth, section in sections(text):
        if level and depth <= level:
            break
        if MARK.search(section):
            level = depth
        if level and LEFT_OUT not in section:
            found.append(section)
    return "".join(found)


def absolute(text: str, page: Path) -> str:
    """Turn relative links into addresses: a notebook is read anywhere."""
    folder = posixpath.dirname(page.relative_to(ROOT).as_posix())

    def replace(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, match[1])) if match[1] else page.relative_to(ROOT).as_posix()
        return f"]({REPOSITORY}{path}{match[2] or ''})"

    return LINK.sub(replace, text)


def cell(kind: str, text: str, number: int) -> dict[str, Any]:
    """Return a cell with a text."""
    lines = text.strip().splitlines(keepends=True)
    made: dict[str, Any] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": lines}
    return made if kind == "markdown" else {**made, "execution_count": None, "outputs": []}


def notebook(page: Path, text: str) -> str:
    """Return the notebook of a page."""
    mark = MARK.search(text)
    assert mark is not None
    address = page.relative_to(ROOT).as_posix()
    title = HEADING.search(text)
    assert title is not None
    whole = chosen(text)
    name = title[2]
    head = (
        f"# {name}\n\nThis notebook {mark[3]}. Install the SDK from a clone of the repository: "
        f"`pip install ./sdk/python`, and log in with `oc login`; in a workbench of OpenShift AI you are logged in. "
        f"Its source is [{address}]({REPOSITORY}{address}).\n"
    )
    body = COMMENT.sub("", whole[whole.index("\n") + 1 :])
    # The page leads to its notebook, and the notebook back.
    body = re.sub(r"(?:The same|This section) is (?:also )?\[a\s+notebook\]\([^)]*\)\. ?", "", body)
    cells, text_before, end = [cell("markdown", head, 1)], "", 0
    for block in FENCE.finditer(body):
        text_before += body[end : block.start()]
        end = block.end()
        if block[1] == "python":
            cells += [cell("markdown", absolute(text_before, page), len(cells) + 1)]
            cells += [cell("code", block[2], len(cells) + 1)]
            text_before = ""
    cells.append(cell("markdown", absolute(text_before + body[end:], page), len(cells) + 1))
    document = {
        "cells": [each for each in cells if each["source"]],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "mpijob": {"samples": mark[2].replace(" ", "").split(",")},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def main() -> int:
    """Write all notebooks."""
    NOTEBOOKS.mkdir(exist_ok=True)
    status, made = 0, set()
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text()
        if mark := MARK.search(text):
            made.add(mark[1])
            status = max(status, write(NOTEBOOKS / f"{mark[1]}.ipynb", notebook(page, text)))
    for path in NOTEBOOKS.glob("*.ipynb"):
        if path.stem not in made:
            print(f"no page has the notebook {path.name}: delete it", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    raise SystemExit(main())
