"""Changes of a job's pods: launcher and workers of an MPIJob, or what a TrainJob changes in those of its runtime."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._duration import parse_duration
from openshift_ai_sdk.training._kinds import is_train_job
from openshift_ai_sdk.training._pods import added_volumes, toleration_of, with_unique_mounts
from openshift_ai_sdk.training._trainer_runtime import CONTAINER, patched_by_us, runtime_patch

SHM = "/dev/shm"


@dataclass(frozen=True)
class Pod:
    """A pod template of a job, or the part of one that a TrainJob changes.

    Attributes:
        spec: Its specification.
        container: The container of the program; None in pods that do not run it.
        is_patch: Whether it changes a template, in which each volume is mounted once.
    """

    spec: Json
    container: Json | None
    is_patch: bool


@dataclass(frozen=True)
class RuntimePods:
    """The pods of a TrainJob's runtime.

    Attributes:
        program: The names of the jobs whose pods run the program.
        others: The names of the other jobs.
        overrides: Whether TrainJobs have podTemplateOverrides, as in Kubeflow Trainer v2.1.
    """

    program: list[str]
    others: list[str]
    overrides: bool


# A change of one pod.
Change = Callable[[Pod], None]


def change_pods(manifest: Json, runtime: RuntimePods | None, change: Change) -> None:
    """Change the pods of a job.

    Args:
        manifest: The job, which is changed.
        runtime: The pods of a TrainJob's runtime. If they are not known, the change is for the jobs that MPI runtimes
            have, until it is fit to the runtime (fit_patch).
        change: Changes a pod.
    """
    if not is_train_job(manifest):
        for role in manifest["spec"]["mpiReplicaSpecs"].values():
            spec = role["template"]["spec"]
            change(Pod(spec, spec["containers"][0], is_patch=False))
        return
    for template, runs_program in templates_of(manifest, runtime):
        spec = template.setdefault("spec", {})
        containers: list[Json] = spec.setdefault("containers", [])
        container = next((each for each in containers if each.get("name") == CONTAINER), None)
        if runs_program and container is None:
            container = {"name": CONTAINER}
            containers.append(container)
        change(Pod(spec, container if runs_program else None, is_patch=True))
        set_or_drop(spec, "containers", [each for each in containers if each is not container or set(each) != {"name"}])
        set_or_drop(template, "spec", spec)
    drop_empty(manifest)


def templates_of(manifest: Json, runtime: RuntimePods | None) -> list[tuple[Json, bool]]:
    """Return the pod templates in which a TrainJob changes its runtime, and whether their pods run the program.

    Those that it lacks are added, so that all pods of the runtime are changed.
    """
    if runtime is not None and runtime.overrides:
        return overrides_of(manifest, runtime)
    ours = patched_by_us(manifest)
    if ours is None:
        ours = runtime_patch({}, runtime.program if runtime else ("node", "launcher"))
        manifest["spec"].setdefault("runtimePatches", []).append(ours)
    jobs = ours["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    if runtime is None:
        # As long as all are the same, they are not fit to a runtime.
        is_new = all(job["template"] == jobs[0]["template"] for job in jobs)
        program = [job["name"] for job in jobs if is_new or changes_program(job)] + ["node", "launcher"]
    else:
        program, known = runtime.program, [job["name"] for job in jobs]
        missing = runtime_patch({}, [name for name in (*program, *runtime.others) if name not in known])
        jobs += missing["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"]
    return [(job["template"]["spec"]["template"], job["name"] in program) for job in jobs]


def overrides_of(manifest: Json, runtime: RuntimePods) -> list[tuple[Json, bool]]:
    """Return the podTemplateOverrides of a TrainJob as templates_of does."""
    overrides: list[Json] = manifest["spec"].setdefault("podTemplateOverrides", [])
    targets = [{target["name"] for target in each.get("targetJobs") or []} for each in overrides]
    run = [bool(names) and names.issubset(runtime.program) for names in targets]
    covered = {name for names, runs_program in zip(targets, run, strict=True) if runs_program for name in names}
    for names, known in ((runtime.program, covered), (runtime.others, set().union(*targets))):
        missing = [{"name": name} for name in names if name not in known]
        if missing:
            overrides.append({"targetJobs": missing})
            run.append(names is runtime.program)
    return list(zip(overrides, run, strict=True))


def changes_program(job: Json) -> bool:
    """Return whether a patch of one of a runtime's jobs changes the container of the program."""
    pod = job["template"]["spec"]["template"].get("spec") or {}
    return any(each.get("name") == CONTAINER for each in pod.get("containers") or [])


def drop_empty(manifest: Json) -> None:
    """Remove changes of pods that change nothing any more."""
    spec = manifest["spec"]
    if "podTemplateOverrides" in spec:
        kept = [each for each in spec["podTemplateOverrides"] if set(each) != {"targetJobs"}]
        set_or_drop(spec, "podTemplateOverrides", kept)
    ours = patched_by_us(manifest)
    if ours is None:
        return
    jobs = ours["trainingRuntimeSpec"]["template"]["spec"]
    jobs["replicatedJobs"] = [job for job in jobs["replicatedJobs"] if job["template"] != {"spec": {"template": {}}}]
    if not jobs["replicatedJobs"]:
        spec["runtimePatches"].remove(ours)
        set_or_drop(spec, "runtimePatches", spec["runtimePatches"])


def field_of(name: str, value: object) -> Change:
    """Return the change of a field of all pods; None removes it."""

    def change(pod: Pod) -> None:
        if value is None:
            pod.spec.pop(name, None)
        else:
            pod.spec[name] = value

    return change


def grace_period(value: Any) -> Change:
    """Return the change of the time that programs have to end."""
    seconds = None if value is None else math.ceil(parse_duration(value))
    return field_of("terminationGracePeriodSeconds", seconds)


def node_selector(value: Mapping[str, str | None]) -> Change:
    """Return the change of node labels; None removes one."""

    def change(pod: Pod) -> None:
        labels = {**(pod.spec.get("nodeSelector") or {}), **value}
        kept = {name: label for name, label in labels.items() if label is not None}
        set_or_drop(pod.spec, "nodeSelector", kept)

    return change


def tolerations(value: Sequence[str | Mapping[str, Any]] | None) -> Change:
    """Return the change of tolerations: each is added, in place of the one of its key and effect. None removes all."""
    wanted = [toleration_of(taint) for taint in value or ()]
    return added_to(
        "tolerations", None if value is None else wanted, lambda each: (each.get("key"), each.get("effect"))
    )


def image_pull_secrets(value: Sequence[str] | None) -> Change:
    """Return the change of the Secrets of registries: each is added. None removes all."""
    wanted = None if value is None else [{"name": name} for name in value]
    return added_to("imagePullSecrets", wanted, lambda each: each.get("name"))


def added_to(name: str, entries: list[Json] | None, key: Callable[[Json], object]) -> Change:
    """Return the change that adds entries to a list of all pods, each in place of the one with its key.

    Args:
        name: The field of pods.
        entries: The entries; None removes the field.
        key: What identifies an entry.
    """

    def change(pod: Pod) -> None:
        if entries is None:
            pod.spec.pop(name, None)
            return
        keys = [key(entry) for entry in entries]
        kept = [each for each in pod.spec.get(name) or [] if key(each) not in keys]
        set_or_drop(pod.spec, name, [*kept, *deepcopy(entries)])

    return change


def run_as_user(value: int | None) -> Change:
    """Return the change of the user of the program; None is that of the image."""

    def change(pod: Pod) -> None:
        if pod.container is None:
            return
        security = dict(pod.container.get("securityContext") or {})
        security.pop("runAsUser", None)
        security.pop("runAsNonRoot", None)
        if value is not None:
            security.update({"runAsUser": value, "runAsNonRoot": True})
        set_or_drop(pod.container, "securityContext", security)

    return change


def volumes(value: Sequence[Mapping[str, Any]]) -> Change:
    """Return the change that adds volumes, each in place of the one of its name."""

    def change(pod: Pod) -> None:
        if pod.container is not None:
            added_to("volumes", [dict(volume) for volume in value], lambda each: each.get("name"))(pod)

    return change


def volume_mounts(value: Sequence[Mapping[str, Any]]) -> Change:
    """Return the change that adds mounts; a name that no volume has is that of a PersistentVolumeClaim."""

    def change(pod: Pod) -> None:
        for mount in value:
            name = mount["name"]
            claim = {"name": name, "persistentVolumeClaim": {"claimName": name}}
            known = any(each["name"] == name for each in pod.spec.get("volumes") or [])
            mount_volume(pod, None if known else claim, dict(mount))

    return change


def shm(value: str | int | None) -> Change:
    """Return the change of the size of shared memory; None is that of the node."""

    def change(pod: Pod) -> None:
        unmount(pod, SHM)
        for volume, mount in added_volumes(value, None, "", names_of_volumes(pod)):
            mount_volume(pod, volume, mount)

    return change


def output_dir(value: str | None, job: str, before: str | None) -> Change:
    """Return the change of the claim for results.

    Args:
        value: The claim and its path; None for none.
        job: The name of the job, which is that of its folder.
        before: The path where results were before; None for none.
    """

    def change(pod: Pod) -> None:
        if before is not None:
            unmount(pod, before)
        for volume, mount in added_volumes(None, value, job, names_of_volumes(pod)):
            mount_volume(pod, volume, mount)

    return change


def names_of_volumes(pod: Pod) -> list[str]:
    """Return the names of a pod's volumes."""
    return [str(volume["name"]) for volume in pod.spec.get("volumes") or []]


def mount_volume(pod: Pod, volume: Json | None, mount: Json) -> None:
    """Mount a volume in the program's container, in place of the mount at its path; None for a volume of the pod."""
    if pod.container is None:
        return
    kept = volume is None and mount["name"]
    unmount(pod, mount["mountPath"], kept or None)
    if volume is not None:
        pod.spec["volumes"] = [*(pod.spec.get("volumes") or []), volume]
    mounts = [*(pod.container.get("volumeMounts") or []), mount]
    if pod.is_patch:
        pod.spec["volumes"], mounts = with_unique_mounts(pod.spec["volumes"], mounts)
    pod.container["volumeMounts"] = mounts


def unmount(pod: Pod, path: str, kept: str | None = None) -> None:
    """Remove the mount at a path of the program's container, with its volume if nothing else mounts that.

    Args:
        pod: The pod.
        path: The path.
        kept: The name of a volume that stays.
    """
    if pod.container is None:
        return
    mounts = pod.container.get("volumeMounts") or []
    at = [mount for mount in mounts if mount["mountPath"].rstrip("/") == path.rstrip("/")]
    if not at:
        return
    set_or_drop(pod.container, "volumeMounts", [mount for mount in mounts if mount not in at])
    gone = {mount["name"] for mount in at} - {mount["name"] for mount in mounts_of(pod)} - {kept}
    left = [volume for volume in pod.spec.get("volumes") or [] if volume["name"] not in gone]
    set_or_drop(pod.spec, "volumes", left)


def mounts_of(pod: Pod) -> Iterator[Json]:
    """Yield the mounts of all containers of a pod."""
    for container in (*(pod.spec.get("initContainers") or []), *(pod.spec.get("containers") or [])):
        yield from container.get("volumeMounts") or []


def set_or_drop(holder: Json, field: str, value: Any) -> None:
    """Set a field, or remove it if its value is empty."""
    if value:
        holder[field] = value
    else:
        holder.pop(field, None)
