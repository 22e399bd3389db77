"""Jobs are suspended and resumed as the command line does."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from openshift_ai_sdk.training import _suspend
from openshift_ai_sdk.training._job_ref import JobRef
from openshift_ai_sdk.training.errors import NotSupportedError, PermissionDeniedError

CASES: list[dict[str, Any]] = yaml.safe_load(
    (Path(__file__).resolve().parents[4] / "internal" / "jobs" / "testdata" / "suspend.yaml").read_text()
)


def patches_of(job: dict[str, Any], refusal: Exception | None, to: bool) -> list[dict[str, Any]]:
    """Return the patches of a job whose Workload is unknown."""
    patches: list[dict[str, Any]] = []

    async def get(*_: object) -> Any:
        return {**job, "metadata": {**job["metadata"], "uid": "u"}}

    async def list_all(*_: object) -> Any:
        if refusal is not None:
            raise refusal
        return [], None

    async def patch(_resource: object, _namespace: str, _name: str, change: Any) -> None:
        assert change["metadata"].pop("uid") == "u"
        patches.append({field: value for field, value in change.items() if value})

    cluster: Any = SimpleNamespace(api=SimpleNamespace(get=get, list=list_all, patch=patch))
    asyncio.run(_suspend.set_suspended(cluster, JobRef(job["kind"], "ns", "q"), to))
    return patches


@pytest.mark.parametrize("refusal", [None, NotSupportedError("no Kueue"), PermissionDeniedError("forbidden")], ids=repr)
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_job_without_a_known_workload_is_suspended(case: dict[str, Any], refusal: Exception | None) -> None:
    for call, to in (("suspend", True), ("resume", False)):
        assert patches_of(case["job"], refusal, to) == ([case[call]] if case[call] else [])
