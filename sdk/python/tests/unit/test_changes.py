"""Changes of a clone are those of the command line."""

from __future__ import annotations

import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from openshift_ai_sdk.training import _changes

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).resolve().parents[4] / "internal" / "jobs" / "testdata" / "changes.yaml").read_text()
)


def value_at(value: Any, path: str) -> Any:
    """Return the value at a path; None for none."""
    for step in re.findall(r"[^.\[\]]+|\[[^\]]+\]", path):
        name = step.strip("[]")
        value = value[int(name)] if isinstance(value, list) else (value or {}).get(name)
    return value


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_changes_are_those_of_the_command_line(case: dict[str, Any]) -> None:
    job = deepcopy(case["job"])
    problems = _changes.apply(job, {field: value for change in case["changes"] for field, value in change.items()})
    if "error" in case:
        (problem,) = problems
        assert case["error"] in str(problem)
        return
    assert problems == []
    assert {path: value_at(job, path) for path in case["want"]} == case["want"]
