"""Changes of a clone are those of the command line."""

from __future__ import annotations

import asyncio
import re
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from openshift_ai_sdk.training import JobNotFoundError, MPIJob, _changes, _clone, _kinds, _written
from openshift_ai_sdk.training._job_ref import JobRef

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


@pytest.mark.parametrize("runtime", [None, "mpi"])
@pytest.mark.parametrize("queue", [None, "team"])
def test_a_job_that_is_created_suspended_stays_suspended_in_its_queue(runtime: str | None, queue: str | None) -> None:
    job = MPIJob("train", image="i", command="x", runtime=runtime, queue=queue, suspend=True)
    annotations = {"mpi.opendatahub.io/suspend-in-queue": "true"} if queue else None
    assert _written.is_suspended(job.manifest)
    assert job.manifest["metadata"].get("annotations") == annotations
    found = {**job.manifest, "metadata": {**job.manifest["metadata"], "namespace": "team", "uid": "u"}}
    # Created again as it was it stays suspended; its copy is not suspended.
    again = _changes.written_again(found)
    assert _written.is_suspended(again)
    assert again["metadata"].get("annotations") == annotations
    copied = _written.as_written(found)
    assert not _written.is_suspended(copied)
    assert "annotations" not in copied["metadata"]


def cloned(kind: str, name: str, changes: dict[str, Any]) -> Any:
    """Return the runtimeRef of a clone in a cluster with the TrainingRuntime own and the ClusterTrainingRuntime all."""
    job = {
        "apiVersion": _kinds.TRAIN_JOB.api_version,
        "kind": "TrainJob",
        "metadata": {"name": "train", "namespace": "team", "uid": "u"},
        "spec": {"runtimeRef": {"kind": kind, "name": name}, "trainer": {"command": ["train.py"]}},
    }
    there = {("TrainingRuntime", "own"), ("ClusterTrainingRuntime", "all")}

    async def find_job(*_: object) -> Any:
        return SimpleNamespace(object=deepcopy(job), report=None)

    async def find(resource: Any, namespace: str | None, name: str) -> Any:
        assert (namespace is None) == (resource.kind == "ClusterTrainingRuntime")
        return {"metadata": {"name": name}} if (resource.kind, name) in there else None

    async def list_all(resource: Any, namespace: str | None) -> Any:
        return [{"metadata": {"name": name}} for kind, name in there if kind == resource.kind], None

    cluster: Any = SimpleNamespace(api=SimpleNamespace(find=find, list=list_all), find_same=find_job)
    ref = JobRef("TrainJob", "team", "train")
    return asyncio.run(_clone.clone(cluster, ref, "next", changes, "client"))["spec"]["runtimeRef"]


def test_a_clone_with_another_runtime_has_its_kind() -> None:
    assert cloned("ClusterTrainingRuntime", "all", {"runtime": "own"}) == {"kind": "TrainingRuntime", "name": "own"}
    assert cloned("TrainingRuntime", "own", {"runtime": "all"}) == {"kind": "ClusterTrainingRuntime", "name": "all"}
    assert cloned("TrainingRuntime", "own", {"workers": 3}) == {"kind": "TrainingRuntime", "name": "own"}
    given = {"runtime": "own", "spec.runtimeRef.kind": "ClusterTrainingRuntime"}
    assert cloned("TrainingRuntime", "own", given) == {"kind": "ClusterTrainingRuntime", "name": "own"}
    with pytest.raises(JobNotFoundError, match="runtime 'al' does not exist; did you mean all"):
        cloned("TrainingRuntime", "own", {"runtime": "al"})
