"""The pages that explain the codes of findings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from openshift_ai_sdk.training import _links

PAGE = Path(__file__).resolve().parents[4] / "docs" / "troubleshooting.md"


def test_each_code_has_a_heading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(_links.DOCS_VARIABLE, raising=False)
    headings = re.findall(r"^### (\w+)$", PAGE.read_text(), re.MULTILINE)
    assert len(headings) > 50
    for code in headings:
        assert _links.documentation(code) == f"{_links.DOCS}/troubleshooting.md#{code.lower()}"


def test_a_copy_of_the_site_replaces_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(_links.DOCS_VARIABLE, "https://docs.example.com/mpi/")
    assert _links.documentation("OutOfMemory") == "https://docs.example.com/mpi/troubleshooting.html#outofmemory"
