"""The modules of the package import each other in one direction."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import openshift_ai_sdk

ROOT = Path(openshift_ai_sdk.__file__).parent


def modules() -> dict[str, Path]:
    """Return the files of the package by the names of their modules."""
    return {
        ".".join((ROOT.name, *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in ROOT.rglob("*.py")
    }


def imports_of(path: Path, known: dict[str, Path]) -> Iterator[str]:
    """Yield the modules that a file imports: also in functions, and for types alone."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                yield name if name in known else node.module


def test_modules_do_not_import_each_other_in_circles() -> None:
    known = modules()
    graph = {name: set(imports_of(path, known)) - {name} for name, path in known.items()}
    assert len(graph["openshift_ai_sdk.training.client"]) > 20, "imports are not found"
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        raise AssertionError(" imports ".join(reversed(error.args[1]))) from None
