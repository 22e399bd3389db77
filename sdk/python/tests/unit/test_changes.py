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

from openshift_ai_sdk.training import JobNotFoundError, MPIJob, _changes, _clone, _kinds, _trainer_runtime, _written
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
    # Without the label of a queue, too: Kueue adds that of the namespace's default queue.
    annotations = {"mpi.opendatahub.io/suspend-in-queue": "true"}
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


PATCHES: Any = yaml.safe_load(
    (Path(__file__).resolve().parents[4] / "internal" / "jobs" / "testdata" / "pod_patches.yaml").read_text()
)


@pytest.mark.parametrize("case", PATCHES["cases"], ids=[case["name"] for case in PATCHES["cases"]])
def test_pods_of_a_clone_are_changed_as_those_of_a_new_job(case: dict[str, Any]) -> None:
    job = MPIJob("train", command="train.py", runtime="torch").manifest

    def by_name(jobs: list[Any]) -> dict[str, Any]:
        return {each["name"]: each for each in jobs}

    changed = deepcopy(job)
    assert _changes.apply(changed, case["python"], PATCHES["runtime"]) == []
    (patch,) = changed["spec"]["runtimePatches"]
    assert by_name(patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]) == by_name(case["patches"])
    # Without the runtime they are fit to it later, as those of a job of a template.
    changed = deepcopy(job)
    assert _changes.apply(changed, case["python"]) == []
    _trainer_runtime.fit_patch(changed, PATCHES["runtime"], overrides=False)
    (patch,) = changed["spec"]["runtimePatches"]
    assert by_name(patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]) == by_name(case["patches"])
    # Kubeflow Trainer v2.1
    changed = deepcopy(job)
    problems = _changes.apply(changed, case["python"], PATCHES["runtime"], overrides=True)
    if "overrides" in case:
        assert problems == [] and changed["spec"]["podTemplateOverrides"] == case["overrides"]
        assert "runtimePatches" not in changed["spec"]
    else:
        text = "cannot be combined with runtime in this cluster; it requires Kubeflow Trainer v2.2"
        assert {str(problem) for problem in problems} == {f"run_as_user: {text}", f"grace_period: {text}"}


def pods_of(job: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pod templates of an MPIJob, or of the patch of a TrainJob."""
    if job["kind"] == "MPIJob":
        return [role["template"]["spec"] for role in job["spec"]["mpiReplicaSpecs"].values()]
    (patch,) = job["spec"]["runtimePatches"]
    jobs = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    return [each["template"]["spec"]["template"]["spec"] for each in jobs]


@pytest.mark.parametrize("runtime", [None, "torch"])
def test_lists_of_a_clone_are_those_of_the_original_and_more(runtime: str | None) -> None:
    options: dict[str, Any] = {
        "image": "i",
        "command": "x",
        "runtime": runtime,
        "node_selector": {"pool": "a", "zone": "b"},
        "tolerations": ["gpu", "old:NoExecute"],
        "image_pull_secrets": ["one"],
        "shm": "1Gi",
        "output_dir": "results:/results",
        "volume_mounts": [{"name": "data", "mountPath": "/data"}, {"name": "more", "mountPath": "/more"}],
    }
    job = MPIJob("train", **options).manifest
    if runtime:
        _trainer_runtime.fit_patch(job, PATCHES["runtime"], overrides=False)
    changes: dict[str, Any] = {
        "node_selector": {"pool": "c", "zone": None},
        "tolerations": ["gpu=yes", "new"],
        "image_pull_secrets": ["one", "two"],
        "shm": "2Gi",
        "output_dir": "others:/out",
        "volume_mounts": [{"name": "scratch", "mountPath": "/more/"}, {"name": "data", "mountPath": "/again"}],
        "volumes": [{"name": "scratch", "emptyDir": {}}],
        "env": {"A": "1"},
    }
    assert _changes.apply(job, changes, PATCHES["runtime"] if runtime else None) == []
    pods = [pod for pod in pods_of(job) if not runtime or "containers" in pod]
    assert len(pods) == (1 if runtime else 2)
    for pod in pods:
        assert pod["nodeSelector"] == {"pool": "c"}
        assert [(each["key"], each["operator"]) for each in pod["tolerations"]] == [
            ("old", "Exists"),
            ("gpu", "Equal"),
            ("new", "Exists"),
        ]
        assert pod["imagePullSecrets"] == [{"name": "one"}, {"name": "two"}]
        volumes = {volume.pop("name"): volume for volume in deepcopy(pod["volumes"])}
        mounted = {
            each["mountPath"].rstrip("/"): volumes[each["name"]] for each in pod["containers"][0]["volumeMounts"]
        }
        claims = {"data": "/data", "others": "/out"}
        assert mounted == {
            "/dev/shm": {"emptyDir": {"medium": "Memory", "sizeLimit": "2Gi"}},
            "/more": {"emptyDir": {}},
            "/again": {"persistentVolumeClaim": {"claimName": "data"}},
            **{path: {"persistentVolumeClaim": {"claimName": claim}} for claim, path in claims.items()},
        }
        # Volumes that nothing mounts any more are gone, and each of a patch is mounted once.
        names = [each["name"] for each in pod["containers"][0]["volumeMounts"]]
        assert set(names) == set(volumes) and (not runtime or len(set(names)) == len(names))
    others = [pod for pod in pods_of(job) if pod not in pods]
    assert all("volumes" not in pod and pod["nodeSelector"] == {"pool": "c"} for pod in others)


def test_a_clone_keeps_what_its_user_changes_in_the_runtime() -> None:
    job = MPIJob("train", command="x", runtime="torch").manifest
    own = {"targetJobs": [{"name": "node"}], "spec": {"schedulerName": "mine"}}
    job["spec"]["podTemplateOverrides"] = [deepcopy(own)]
    assert _changes.apply(job, {"node_selector": {"pool": "a"}}, PATCHES["runtime"], overrides=True) == []
    added = {"nodeSelector": {"pool": "a"}}
    others = [{"name": "dataset-initializer"}, {"name": "model-initializer"}]
    overrides = [{**own, "spec": {**own["spec"], **added}}, {"targetJobs": others, "spec": added}]
    assert job["spec"]["podTemplateOverrides"] == overrides
    assert _changes.apply(job, {"node_selector": {"pool": None}}, PATCHES["runtime"], overrides=True) == []
    assert job["spec"]["podTemplateOverrides"] == [own]
    # So does a job of a template.
    assert _changes.apply(job, {"node_selector": {"pool": "a"}}) == []
    _trainer_runtime.fit_patch(job, PATCHES["runtime"], overrides=True)
    node = {"targetJobs": [{"name": "node"}], "spec": added}
    assert job["spec"]["podTemplateOverrides"] == [own, node, {"targetJobs": others, "spec": added}]


def test_resources_of_a_clone_take_the_place_of_others() -> None:
    job = MPIJob("train", image="i", command="x", resources={"cpu": 1, "memory": "1Gi", "amd.com/gpu": 2}).manifest
    size = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]["resources"]
    size["limits"]["cpu"] = "1"
    assert _changes.apply(job, {"resources": {"cpu": 4, "gpu": 1}}) == []
    assert size == {
        "requests": {"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "1"},
        "limits": {"cpu": "4", "memory": "1Gi", "nvidia.com/gpu": "1"},
    }


def test_flags_of_a_command_without_an_added_mpirun_stay() -> None:
    job = MPIJob("train", image="i", command="mpirun -n 3 x").manifest
    (problem,) = _changes.apply(job, {"mpi_flags": "-v"})
    assert str(problem) == f"mpi_flags: {_changes.OWN_LAUNCH}"
