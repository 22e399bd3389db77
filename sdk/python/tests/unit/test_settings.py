"""The arguments of MPIJob are those of the table of settings, and are where the table has them in jobs of both kinds.

settings.json is the table of internal/jobs/settings.go: `go test ./internal/jobs -run TestSettingsReference -update`
writes it.
"""

from __future__ import annotations

import inspect
import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from openshift_ai_sdk.training import InvalidJobError, MPIJob, _changes, _job_spec, _trainer_runtime
from openshift_ai_sdk.training._manifest import without_empty

SETTINGS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "settings.json").read_text())
GOOD: dict[str, Any] = {"image": "train:1", "command": "train.py"}
# The arguments of the same setting, and what is no setting of a job.
BESIDES = {"volumes", "client", "unknown"}
EXAMPLES: dict[str, dict[str, Any]] = {
    "name": {"name": "other"},
    "namespace": {"namespace": "team"},
    "runtime": {"runtime": "mpi"},
    "label": {"labels": {"example.com/team": "a"}},
    "suspend": {"suspend": True},
    "annotations": {"annotations": {"example.com/a": "b"}},
    "image": {"image": "train:2"},
    "command": {"command": "python train.py"},
    "mpiFlags": {"mpi_flags": "--bind-to core"},
    "implementation": {"mpi_implementation": "MPICH"},
    "workdir": {"workdir": "/app"},
    "env": {"env": {"A": "1"}},
    "connection": {"connections": ["data"]},
    "mlflow_tracking_uri": {"mlflow_tracking_uri": "https://mlflow.example.com"},
    "runAsUser": {"run_as_user": 1000},
    "workers": {"workers": 3},
    "slots": {"slots_per_worker": 2},
    "gpu": {"resources": {"nvidia.com/gpu": 1}},
    "gpuResource": {"resources": {"amd.com/gpu": 1}},
    "cpu": {"resources": {"cpu": 4}},
    "memory": {"resources": {"memory": "8Gi"}},
    "shm": {"shm": "8Gi"},
    "launcherCpu": {"launcher_resources": {"cpu": 1}},
    "launcherMemory": {"launcher_resources": {"memory": "2Gi"}},
    "volume": {"volume_mounts": [{"name": "data", "mountPath": "/data"}]},
    "outputDir": {"output_dir": "results:/results"},
    "queue": {"queue": "team"},
    "priority": {"priority": "high"},
    "nodeSelector": {"node_selector": {"gpu": "a100"}},
    "toleration": {"tolerations": ["nvidia.com/gpu"]},
    "topology": {"topology": "topology.kubernetes.io/zone"},
    "rdma": {"rdma": "required"},
    "profile": {"profile": True},
    "waitForQuota": {"wait_for_quota": True},
    "gangTimeout": {"gang_timeout": "10m"},
    "imagePullSecret": {"image_pull_secrets": ["registry"]},
    "serviceAccount": {"service_account": "trainer"},
    "retries": {"retries": 3},
    "deadline": {"deadline": "4h"},
    "gracePeriod": {"grace_period": "2m"},
    "ttl": {"ttl": "24h"},
}


def test_all_arguments_are_settings() -> None:
    arguments = set(inspect.signature(MPIJob).parameters)
    assert arguments - BESIDES == {setting["Python"] for setting in SETTINGS if setting["Python"]}
    assert set(EXAMPLES) == {setting["Name"] for setting in SETTINGS if setting["Python"]}


def value_at(value: Any, path: str) -> Any:
    for step in re.findall(r"[^.\[\]]+|\[[^\]]+\]", path):
        name = step.strip("[]")
        if isinstance(value, list):
            value = value[int(name)] if int(name) < len(value) else None
        else:
            value = (value or {}).get(name)
    return value


def values_at(job: MPIJob, expression: dict[str, str]) -> list[Any]:
    """Return the values at the path of an expression, one for each pod template."""
    spec: Any = job.manifest["spec"]
    if not expression["In"]:
        return [value_at(job.manifest, expression["Field"])]
    if job.kind == "TrainJob":
        (patch,) = spec.get("runtimePatches") or [_trainer_runtime.runtime_patch({"spec": {}}, ("node", "launcher"))]
        jobs = patch["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
        pods = [each["template"]["spec"]["template"]["spec"] for each in jobs]
    else:
        roles = {"launcher": ["Launcher"], "workers": ["Worker"], "all pods": ["Launcher", "Worker"]}[expression["In"]]
        pods = [spec["mpiReplicaSpecs"][role]["template"]["spec"] for role in roles]
    return [value_at(pod, expression["Field"]) for pod in pods]


@pytest.mark.parametrize("kind", ["MPIJob", "TrainJob"])
@pytest.mark.parametrize("setting", [each for each in SETTINGS if each["Python"]], ids=lambda each: each["Name"])
def test_settings_are_where_the_table_has_them(setting: dict[str, Any], kind: str) -> None:
    name, expression = setting["Name"], setting[kind]
    base: dict[str, Any] = {"name": "train", **GOOD, **({"runtime": "mpi"} if kind == "TrainJob" else {})}
    options = {**base, **EXAMPLES[name]}
    if name == "runtime":
        base.pop("runtime", None)
    if expression["Reason"] and name != "runtime":
        with pytest.raises(InvalidJobError) as refused:
            MPIJob(**options)
        assert str(refused.value).startswith(f"{setting['Python']}: cannot be combined with runtime")
        return
    without, job = MPIJob(**base), MPIJob(**options)
    if kind == "TrainJob" and name in ("mpiFlags", "workdir"):
        # They are in the command once the runtime is known.
        launch = job._launch
        assert launch is not None
        assert launch.words(None) in (["--bind-to", "core"], ["--wdir", "/app"])
        return
    if kind == "MPIJob" and name == "runtime":
        assert job.kind == "TrainJob"
        return
    before, after = values_at(without, expression), values_at(job, expression)
    assert all(after) and before != after, f"{name} of a {kind} is not at {expression}"


def test_the_specification_has_no_further_settings() -> None:
    python = {setting["Python"] for setting in SETTINGS}
    assert set(_job_spec.JobSpec.__dataclass_fields__) - BESIDES <= python


# Changes of a clone that are not the arguments of create: the command is that of the launcher.
CLONED: dict[str, dict[str, Any]] = {
    "command": {"command": "mpirun --tag-output -n 1 python train.py"},
    "workers": {"workers": 3, "command": "mpirun --tag-output -n 3 train.py"},
    "slots": {"slots_per_worker": 2, "command": "mpirun --tag-output -n 2 train.py"},
}
# Settings that a clone has, too: all besides its name and place.
CHANGED = [each for each in SETTINGS if each["Python"] and each["Name"] not in ("name", "namespace", "runtime")]
# What takes an entry or a switch out; others are taken out by None.
REMOVED: dict[str, Any] = {
    "label": {"example.com/team": None},
    "annotations": {"example.com/a": None},
    "nodeSelector": {"gpu": None},
    "env": {"A": None},
    "profile": False,
    "waitForQuota": False,
}
# What every job has, or is taken out by the path of a field.
KEPT = {"image", "command", "workers", "slots", "gpu", "gpuResource", "cpu", "memory", "suspend", "volume"}
# An MPI runtime of the operator.
RUNTIME: dict[str, Any] = {
    "metadata": {"name": "mpi", "annotations": {"mpi.opendatahub.io/mpi-implementation": "OpenMPI"}},
    "spec": {
        "mlPolicy": {"mpi": {}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {"name": name, "template": {"spec": {"template": {"spec": {"containers": [{"name": "node"}]}}}}}
                    for name in ("node", "launcher")
                ]
            }
        },
    },
}


def created(kind: str, **options: Any) -> dict[str, Any]:
    """Return a job as it is created."""
    job = MPIJob("train", **({"runtime": "mpi"} if kind == "TrainJob" else {}), **{**GOOD, **options})
    if job._launch is not None:
        _trainer_runtime.runtime_command(job.manifest, RUNTIME, job._launch)
    return job.manifest


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("kind", ["MPIJob", "TrainJob"])
@pytest.mark.parametrize("setting", CHANGED, ids=lambda each: each["Name"])
def test_clone_changes_what_create_sets(setting: dict[str, Any], kind: str, known: bool) -> None:
    name, changed = setting["Name"], created(kind)
    runtime = RUNTIME if kind == "TrainJob" and known else None
    problems = _changes.apply(changed, CLONED.get(name, EXAMPLES[name]), runtime)
    if setting[kind]["Reason"]:
        (problem,) = problems
        assert str(problem).startswith(f"{setting['Python']}: cannot be combined with runtime")
        return
    assert problems == []
    assert changed == created(kind, **EXAMPLES[name])


@pytest.mark.parametrize("kind", ["MPIJob", "TrainJob"])
@pytest.mark.parametrize("setting", CHANGED, ids=lambda each: each["Name"])
def test_clone_takes_settings_out(setting: dict[str, Any], kind: str) -> None:
    name = setting["Name"]
    if name in KEPT or setting[kind]["Reason"]:
        return
    changed = created(kind, **EXAMPLES[name])
    changes = {setting["Python"]: REMOVED.get(name)}
    assert _changes.apply(changed, changes, RUNTIME if kind == "TrainJob" else None) == []
    assert without_empty(changed) == created(kind)


def test_a_runtime_refuses_what_it_does_not_apply() -> None:
    for needs, names in (("MPI runtime", _job_spec.WITH_MPI), ("MPI runtime of the operator", _job_spec.WITH_OURS)):
        only = {each["Python"] for each in SETTINGS if each["TrainJob"]["Only"].endswith(f"requires an {needs}")}
        assert only == set(names)
    spec = {**RUNTIME["spec"], "mlPolicy": {"torch": {}}}
    torch: dict[str, Any] = {"metadata": {"name": "torch"}, "spec": spec}
    upstream: dict[str, Any] = {**RUNTIME, "metadata": {"name": "deepspeed"}}
    for setting in SETTINGS:
        name = setting["Python"]
        if name not in (*_job_spec.WITH_MPI, *_job_spec.WITH_OURS):
            continue
        job = MPIJob("train", runtime="x", **GOOD, **EXAMPLES[setting["Name"]])
        assert job._launch is not None
        for runtime, refuses in ((RUNTIME, False), (torch, True), (upstream, name in _job_spec.WITH_OURS)):
            made, copied = deepcopy(job.manifest), created("TrainJob")
            problems = _changes.apply(copied, EXAMPLES[setting["Name"]], runtime)
            if not refuses:
                _trainer_runtime.runtime_command(made, runtime, job._launch)
                assert problems == []
                continue
            with pytest.raises(InvalidJobError) as refused:
                _trainer_runtime.runtime_command(made, runtime, job._launch)
            (problem,) = refused.value.problems
            text = f"{name}: cannot be combined with runtime {runtime['metadata']['name']}"
            assert str(problem).startswith(text) and [str(each) for each in problems] == [str(problem)]


def test_the_priority_in_a_queue_is_that_of_kueue() -> None:
    label, note = "kueue.x-k8s.io/priority-class", "mpi.opendatahub.io/priority-class"
    torch: dict[str, Any] = {"metadata": {"name": "torch"}, "spec": {**RUNTIME["spec"], "mlPolicy": {"torch": {}}}}
    queued = created("TrainJob", queue="team", priority="high")
    assert queued["metadata"]["labels"][label] == "high" and note not in queued["metadata"].get("annotations", {})
    plain = created("TrainJob", priority="high")
    assert plain["metadata"]["annotations"][note] == "high" and label not in plain["metadata"].get("labels", {})
    job = MPIJob("train", runtime="torch", queue="team", priority="high", **GOOD)
    assert job._launch is not None
    _trainer_runtime.runtime_command(job.manifest, torch, job._launch)
    for changes, problems in (({"queue": "team"}, 0), ({}, 1)):
        copied = created("TrainJob")
        assert len(_changes.apply(copied, {**changes, "priority": "low"}, torch)) == problems
        if changes:
            assert copied["metadata"]["labels"][label] == "low"
    assert _changes.apply(queued, {"priority": None}, RUNTIME) == []
    assert label not in queued["metadata"]["labels"]


@pytest.mark.parametrize(("before", "after"), [(None, "team"), ("team", None)])
def test_a_priority_moves_with_a_queue(before: str | None, after: str | None) -> None:
    label, note = "kueue.x-k8s.io/priority-class", "mpi.opendatahub.io/priority-class"
    job = created("TrainJob", priority="high", **({"queue": before} if before else {}))
    assert _changes.apply(job, {"queue": after, "priority": "low"}, RUNTIME) == []
    assert job["metadata"].get("labels", {}).get(label) == ("low" if after else None)
    assert (job["metadata"].get("annotations") or {}).get(note) == (None if after else "low")
