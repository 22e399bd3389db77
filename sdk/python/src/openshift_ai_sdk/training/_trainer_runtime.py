"""Adapts a TrainJob to its runtime of Kubeflow Trainer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from copy import deepcopy

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._command import LaunchOptions, launched
from openshift_ai_sdk.training._driver import Json, Request
from openshift_ai_sdk.training._job_spec import WITH_MPI, WITH_OURS, WITHOUT_QUEUE
from openshift_ai_sdk.training._kinds import TRAIN_JOB, Resource
from openshift_ai_sdk.training._resources import gpus_of
from openshift_ai_sdk.training._similar import nearest
from openshift_ai_sdk.training.errors import InvalidJobError, JobNotFoundError, NotSupportedError, Problem

RUNTIMES = (
    Resource("trainer.kubeflow.org/v1alpha1", "TrainingRuntime", "trainingruntimes"),
    Resource("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes"),
)
# The container of a runtime's pods that a TrainJob changes, and the author of the SDK's changes.
CONTAINER = "node"
PATCHER = "mpi.opendatahub.io/jobs"
# Options that podTemplateOverrides do not have, and what is wrong with them.
SINCE_V22 = ("grace_period", "run_as_user")
SINCE_PATCHES = "cannot be combined with runtime in this cluster; it requires Kubeflow Trainer v2.2"
ANNOTATION_IMPLEMENTATION = "mpi.opendatahub.io/mpi-implementation"


async def with_runtime(cluster: Cluster, manifest: Json, launch: LaunchOptions | None = None) -> Json:
    """Return a TrainJob with the kind of its runtime, and with mpirun in its command if it needs it.

    Raises:
        InvalidJobError: The runtime, or the version of Kubeflow Trainer, cannot express an option.
        JobNotFoundError: There is no such runtime.
    """
    manifest = deepcopy(manifest)
    runtime = await settle_runtime(cluster, manifest)
    runtime_command(manifest, runtime, launch or LaunchOptions())
    if patched_by_us(manifest) is not None:
        fit_patch(manifest, runtime, overrides=not await has_runtime_patches(cluster))
    return manifest


async def settle_runtime(cluster: Cluster, manifest: Json) -> Json:
    """Write the kind of a TrainJob's runtime into the job, which is changed, and return the runtime.

    Raises:
        JobNotFoundError: There is no such runtime.
    """
    ref, namespace = manifest["spec"]["runtimeRef"], manifest["metadata"]["namespace"]
    names: list[str] = []
    for resource in RUNTIMES:
        scope = namespace if resource is RUNTIMES[0] else None
        if ref.get("kind") not in (None, resource.kind):
            continue
        runtime = await cluster.api.find(resource, scope, ref["name"])
        if runtime is not None:
            ref["kind"] = resource.kind
            return runtime
        try:
            names += [item["metadata"]["name"] for item in (await cluster.api.list(resource, scope))[0]]
        except NotSupportedError:
            continue
    there = (
        f"use one of {', '.join(sorted(names))}"
        if names
        else "this cluster has no runtimes, or Kubeflow Trainer is not installed"
    )
    raise JobNotFoundError(f"runtime {ref['name']!r} does not exist{nearest(ref['name'], names)}; {there}")


async def has_runtime_patches(cluster: Cluster) -> bool:
    """Return whether the cluster's TrainJobs have runtimePatches, as those of Kubeflow Trainer since v2.2."""
    schema = await cluster.api.call(Request("GET", f"/openapi/v3/apis/{TRAIN_JOB.api_version}"))
    return '"runtimePatches"' in json.dumps(schema)


def runtime_command(manifest: Json, runtime: Json, launch: LaunchOptions) -> None:
    """Put mpirun before a TrainJob's command if its runtime is one of MPI.

    Raises:
        InvalidJobError: The runtime does not apply an option.
    """
    if problems := problems_of_options(runtime, launch.options, launch.workdir):
        raise InvalidJobError(problems)
    if is_mpi(runtime):
        name = implementation_of(runtime)
        trainer = manifest["spec"]["trainer"]
        trainer["command"] = launched(trainer["command"], ranks_of(manifest, runtime), name, launch.words(name))


def is_mpi(runtime: Json) -> bool:
    """Return whether Kubeflow Trainer runs the jobs of a runtime as MPI jobs."""
    return (runtime["spec"].get("mlPolicy") or {}).get("mpi") is not None


def implementation_of(runtime: Json) -> str | None:
    """Return the MPI implementation that the operator's runtimes name; None for other runtimes."""
    name: str | None = (runtime["metadata"].get("annotations") or {}).get(ANNOTATION_IMPLEMENTATION)
    return name


def problems_of_options(runtime: Json, options: Iterable[str], workdir: str | None = None) -> list[Problem]:
    """Return the options that a runtime does not apply."""
    name, found = runtime["metadata"]["name"], []
    for option in options:
        if option in (*WITH_OURS, *WITHOUT_QUEUE) and not (is_mpi(runtime) and implementation_of(runtime)):
            needs = f"requires an MPI runtime of the operator, with the annotation {ANNOTATION_IMPLEMENTATION}"
            found.append(Problem(option, f"cannot be combined with runtime {name}: it {needs}"))
        elif option in WITH_MPI and not is_mpi(runtime):
            folder = f"; write the folder in the command: 'cd {workdir} && exec python train.py'"
            instead = folder if option == "workdir" and workdir else ""
            text = f"cannot be combined with runtime {name}, which does not use MPI{instead}"
            found.append(Problem(option, text))
    return found


def ranks_of(manifest: Json, runtime: Json) -> int:
    """Return the number of slots of all hosts of a TrainJob with a runtime of MPI; 0 with another runtime."""
    policy = (runtime["spec"].get("mlPolicy") or {}).get("mpi")
    if policy is None:
        return 0
    trainer = manifest["spec"].get("trainer") or {}
    slots = trainer.get("numProcPerNode")
    if slots is None:
        slots = policy.get("numProcPerNode") or 1
        slots = slots if slots != 1 else max(gpus_of(node_size(manifest, runtime)), 1)
    hosts = trainer.get("numNodes") or runtime["spec"]["mlPolicy"].get("numNodes") or 1
    if policy.get("runLauncherAsNode"):
        # Trainer makes one worker at least, besides the launcher.
        hosts = max(hosts - 1, 1) + 1
    return int(slots) * int(hosts)


async def runtime_of(cluster: Cluster, manifest: Json) -> Json | None:
    """Return the runtime that a TrainJob names, or None if it does not exist."""
    ref, namespace = manifest["spec"]["runtimeRef"], manifest["metadata"].get("namespace")
    for resource in RUNTIMES:
        if ref.get("kind") in (None, resource.kind):
            scope = namespace if resource is RUNTIMES[0] else None
            runtime = await cluster.api.find(resource, scope, ref["name"])
            if runtime is not None:
                return runtime
    return None


def node_size(manifest: Json, runtime: Json) -> Json:
    """Return the resources of a TrainJob's node: those of the job, else of its runtime."""
    size: Json | None = (manifest["spec"].get("trainer") or {}).get("resourcesPerNode")
    if size is not None:
        return size
    for job in runtime["spec"]["template"]["spec"].get("replicatedJobs") or []:
        labels = (job["template"].get("metadata") or {}).get("labels") or {}
        if labels.get("trainer.kubeflow.org/trainjob-ancestor-step") == "trainer":
            containers = job["template"]["spec"]["template"]["spec"]["containers"]
            return next((item.get("resources") or {} for item in containers if item["name"] == "node"), {})
    return {}


def runtime_patch(patch: Json, jobs: Iterable[str]) -> Json:
    """Return the runtimePatch that changes the pods of these jobs of a runtime."""
    return runtime_patches((name, patch) for name in jobs)


def runtime_patches(patches: Iterable[tuple[str, Json]]) -> Json:
    """Return the runtimePatch with the changes of the pods of each of a runtime's jobs."""
    patched = [{"name": name, "template": {"spec": {"template": deepcopy(patch)}}} for name, patch in patches]
    return {"manager": PATCHER, "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": patched}}}}


def patched_by_us(manifest: Json) -> Json | None:
    """Return the runtimePatch of a TrainJob that runtime_patch made, or None."""
    patches = manifest["spec"].get("runtimePatches") or []
    return next((patch for patch in patches if patch.get("manager") == PATCHER), None)


def fit_patch(manifest: Json, runtime: Json, overrides: bool) -> None:
    """Have a TrainJob's changes of pods apply to the jobs that its runtime really has.

    Args:
        manifest: The TrainJob, which is changed.
        runtime: Its runtime.
        overrides: Whether the cluster has Kubeflow Trainer v2.1, whose TrainJobs have podTemplateOverrides instead.

    Raises:
        InvalidJobError: The podTemplateOverrides do not have an option.
    """
    ours = patched_by_us(manifest)
    if ours is None:
        return
    written = ours["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    patch = written[0]["template"]["spec"]["template"]
    if any(job["template"] != written[0]["template"] for job in written):
        # Somebody has changed one of the jobs, and knows their names.
        return
    # The other pods, such as those of initializers, keep their containers, and do not need the volumes of these.
    place = {"spec": {field: value for field, value in patch["spec"].items() if field not in ("containers", "volumes")}}
    program, others = jobs_of(runtime)
    if not program:
        return
    changes = [(patch, program), (place, others)] if place["spec"] and others else [(patch, program)]
    if not overrides:
        ours.update(runtime_patches((name, fields) for fields, names in changes for name in names))
        return
    if problems := since_runtime_patches(patch):
        raise InvalidJobError(problems)
    del manifest["spec"]["runtimePatches"]
    # Those that the user wrote stay; later ones take precedence.
    manifest["spec"].setdefault("podTemplateOverrides", []).extend(
        {"targetJobs": [{"name": name} for name in names], **deepcopy(fields)} for fields, names in changes
    )


def jobs_of(runtime: Json) -> tuple[list[str], list[str]]:
    """Return the names of a runtime's jobs whose pods run the program, and of its other jobs."""
    program: list[str] = []
    others: list[str] = []
    for job in runtime["spec"]["template"]["spec"].get("replicatedJobs") or []:
        containers = job["template"]["spec"]["template"]["spec"]["containers"]
        (program if any(item["name"] == CONTAINER for item in containers) else others).append(job["name"])
    return program, others


def since_runtime_patches(patch: Json) -> list[Problem]:
    """Return the options in a patch that podTemplateOverrides do not have."""
    pod = patch["spec"]
    user = any("securityContext" in container for container in pod.get("containers") or [])
    given = ("terminationGracePeriodSeconds" in pod, user)
    return [Problem(option, SINCE_PATCHES) for option, is_set in zip(SINCE_V22, given, strict=True) if is_set]
