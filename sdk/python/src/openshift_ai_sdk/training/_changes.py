"""Changes of a job's manifest, by the words that ``kubectl odh mpijob clone --set`` takes, too."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from openshift_ai_sdk.training import _quantity
from openshift_ai_sdk.training._command import is_command, words_of
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._duration import parse_duration
from openshift_ai_sdk.training._kinds import ANNOTATION_SUSPEND_IN_QUEUE, LABEL_QUEUE, TRAIN_JOB, is_train_job
from openshift_ai_sdk.training._resources import NVIDIA_GPU, is_gpu, request_limits
from openshift_ai_sdk.training._similar import nearest
from openshift_ai_sdk.training._value_rules import (
    LABEL_VALUE,
    OBJECT_NAME_RULE,
    is_object_name,
    problem_of_image,
    problems_of_env,
    problems_of_labels,
    whole,
)
from openshift_ai_sdk.training._written import as_written, is_suspended, is_suspended_in_queue, suspend_path
from openshift_ai_sdk.training.errors import Problem
from openshift_ai_sdk.training.models import Remedy

STEP = re.compile(r"\[([^\]]+)\]|([^.\[\]]+)")
PATH = re.compile(r"[^.\[\]]+(\.[^.\[\]]+|\[[^\]]+\])*")

BOTH_ROLES = ("Launcher", "Worker")
# What the path of any other field begins with.
PATHS = ("spec.", "metadata.labels", "metadata.annotations")


@dataclass(frozen=True)
class Setting:
    """A change that has a name of its own.

    Attributes:
        check: Returns what is wrong with a value, whatever the job; the text is empty if nothing is.
        write: Makes the change in a manifest.
    """

    check: Callable[[Any], str | list[Problem]]
    write: Callable[[Json, Any], None]


# Fields that a setting of one word changes, too.
WORDS = {
    "spec.mpiReplicaSpecs.Worker.replicas": "workers",
    "spec.trainer.numNodes": "workers",
    "spec.slotsPerWorker": "slots_per_worker",
    "spec.trainer.numProcPerNode": "slots_per_worker",
}


class ChangeError(ValueError):
    """A change does not fit the job; the text says what is allowed."""


def problems_of(changes: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with changes whatever the job, so that it is found before the job is read."""
    problems = []
    for name, value in changes.items():
        setting = SETTINGS.get(name)
        if setting is not None:
            found = setting.check(value)
            problems += [Problem(name, found)] if isinstance(found, str) and found else list(found or ())
        elif not name.startswith(PATHS):
            allowed = f"use {', '.join(SETTINGS)}, or a path such as 'spec.slotsPerWorker'"
            problems.append(Problem(name, f"cannot be changed{nearest(name, SETTINGS)}; {allowed}"))
        elif not PATH.fullmatch(name):
            problems.append(Problem(name, "is no path; use one such as 'spec.slotsPerWorker'"))
    return problems


def apply(manifest: Json, changes: Mapping[str, Any]) -> list[Problem]:
    """Make changes in a manifest, and return what is wrong with them."""
    problems = problems_of(changes)
    if problems:
        return problems
    for name, value in changes.items():
        try:
            if name in SETTINGS:
                SETTINGS[name].write(manifest, value)
            else:
                set_path(manifest, name, value)
        except ChangeError as error:
            problems.append(Problem(name, str(error)))
    suspend_in_queue(manifest)
    return problems


def suspend_in_queue(manifest: Json) -> None:
    """Set the annotation that suspends a job in a queue if its field suspend is set, which Kueue resets."""
    meta = manifest["metadata"]
    if is_suspended(manifest) and (meta.get("labels") or {}).get(LABEL_QUEUE):
        meta["annotations"] = {**(meta.get("annotations") or {}), ANNOTATION_SUSPEND_IN_QUEUE: "true"}


def number(mpi_path: str, train_path: str) -> Setting:
    """Return a change of a number from 1 on."""

    def check(value: object) -> str:
        count = whole(value)
        if count is None:
            return f"{value!r} is not allowed; use a whole number, 1 or more"
        return "" if count >= 1 else f"{value!r} is not allowed; use 1 or more"

    def write(manifest: Json, value: object) -> None:
        path = train_path if is_train_job(manifest) else mpi_path
        if path.endswith("Worker.replicas") and "Worker" not in manifest["spec"]["mpiReplicaSpecs"]:
            raise ChangeError("the job has no workers, only a launcher")
        set_path(manifest, path, value)

    return Setting(check, write)


def size(resource: str) -> Setting:
    """Return a change of what each worker has of a resource."""
    return Setting(check_amount(resource), lambda manifest, value: set_amount(manifest, resource, value))


def set_amount(manifest: Json, resource: str, value: object) -> None:
    """Change what each worker has of a resource: what is written of it already, a limit otherwise."""
    for target in worker_sizes(manifest):
        written = [part for part in ("requests", "limits") if resource in (target.get(part) or {})]
        for part in written or ["limits"]:
            target[part] = {**(target.get(part) or {}), resource: str(value)}
        if is_train_job(manifest):
            request_limits(target)


def set_gpus(manifest: Json, value: object) -> None:
    """Change the GPUs of each worker: of the kind that the job requests, else of nvidia.com/gpu."""
    sizes = [target.get(part) or {} for target in worker_sizes(manifest) for part in ("requests", "limits")]
    names = sorted({name for size in sizes for name in size if is_gpu(name)})
    if len(names) > 1:
        raise ChangeError(f"the job requests several kinds of GPUs ({', '.join(names)}); change their fields by paths")
    set_amount(manifest, names[0] if names else NVIDIA_GPU, value)


def worker_sizes(manifest: Json) -> list[Json]:
    """Return the resources of each role of a job that runs ranks."""
    if is_train_job(manifest):
        return [manifest["spec"].setdefault("trainer", {}).setdefault("resourcesPerNode", {})]
    roles = BOTH_ROLES if manifest["spec"].get("runLauncherAsWorker") else ("Worker",)
    return [each.setdefault("resources", {}) for each in main_containers(manifest, roles)]


def main_containers(manifest: Json, roles: Iterable[str]) -> Iterable[Json]:
    """Yield the main container of some roles of an MPIJob."""
    for role in roles:
        spec = manifest["spec"]["mpiReplicaSpecs"].get(role)
        if spec is not None:
            yield spec["template"]["spec"]["containers"][0]


def check_image(value: object) -> str:
    """Check the name of an image."""
    return problem_of_image(value) or ""


def set_image(manifest: Json, value: object) -> None:
    """Change the image of launcher and workers."""
    if is_train_job(manifest):
        set_path(manifest, "spec.trainer.image", value)
        return
    for container in main_containers(manifest, BOTH_ROLES):
        container["image"] = value


def check_command(value: Any) -> str:
    """Check a command."""
    try:
        words = words_of(value) if value and is_command(value) else []
    except ValueError as error:
        return f"{value!r} cannot be read: {error}"
    return "" if words else f"{value!r} is not allowed; use a command such as 'mpirun python train.py'"


def set_command(manifest: Json, value: Any) -> None:
    """Change what the launcher runs, mpirun included."""
    targets = (
        [manifest["spec"].setdefault("trainer", {})]
        if is_train_job(manifest)
        else list(main_containers(manifest, ["Launcher"]))
    )
    for target in targets:
        target["command"] = words_of(value)
        target.pop("args", None)


def check_queue(value: object) -> str:
    """Check the name of a queue; None takes the job out of its queue."""
    if value is None or (is_object_name(value) and LABEL_VALUE.fullmatch(str(value))):
        return ""
    return f"{value!r} is not the name of a LocalQueue; {OBJECT_NAME_RULE}"


def set_queue(manifest: Json, value: object) -> None:
    """Change the queue that the job waits in."""
    set_labels(manifest, {LABEL_QUEUE: value})


def set_labels(manifest: Json, value: Any) -> None:
    """Change labels; None takes one out."""
    labels = manifest["metadata"].setdefault("labels", {})
    labels.update(value)
    manifest["metadata"]["labels"] = {name: item for name, item in labels.items() if item is not None}


def set_env(manifest: Json, value: Any) -> None:
    """Change variables of every rank; None takes one out."""
    targets = (
        [manifest["spec"].setdefault("trainer", {})]
        if is_train_job(manifest)
        else list(main_containers(manifest, BOTH_ROLES))
    )
    for target in targets:
        kept = [entry for entry in target.get("env") or [] if entry["name"] not in value]
        target["env"] = kept + [{"name": name, "value": item} for name, item in value.items() if item is not None]


def check_runtime(value: object) -> str:
    """Check the name of a runtime."""
    return "" if is_object_name(value) else f"{value!r} is not the name of a runtime; {OBJECT_NAME_RULE}"


def set_runtime(manifest: Json, value: object) -> None:
    """Change the runtime of a TrainJob."""
    if not is_train_job(manifest):
        raise ChangeError("an MPIJob has no runtime")
    set_path(manifest, "spec.runtimeRef.name", value)
    # The runtime before may be of another kind.
    set_path(manifest, "spec.runtimeRef.kind", None)


def check_deadline(value: Any) -> str:
    """Check the longest time that the job may take; None is no limit."""
    try:
        if value is None or parse_duration(value) >= 1:
            return ""
    except ValueError:
        pass
    return f"{value!r} is not allowed; use 1 second or more, such as '4h' or 3600"


def set_deadline(manifest: Json, value: Any) -> None:
    """Change the longest time that the job may take."""
    path = "spec.activeDeadlineSeconds" if is_train_job(manifest) else "spec.runPolicy.activeDeadlineSeconds"
    set_path(manifest, path, None if value is None else math.ceil(parse_duration(value)))


def check_suspend(value: object) -> str:
    """Check whether the job is created suspended."""
    return "" if isinstance(value, bool) else f"{value!r} is not allowed; use True or False"


def set_suspend(manifest: Json, value: object) -> None:
    """Change whether the job is created suspended."""
    set_path(manifest, suspend_path(manifest["kind"]), value)
    if not value:
        (manifest["metadata"].get("annotations") or {}).pop(ANNOTATION_SUSPEND_IN_QUEUE, None)


def check_amount(resource: str) -> Callable[[object], str]:
    """Return the check of an amount of a resource."""
    return lambda value: _quantity.problem_of(resource, value) or ""


SETTINGS: dict[str, Setting] = {
    "workers": number("spec.mpiReplicaSpecs.Worker.replicas", "spec.trainer.numNodes"),
    "slots_per_worker": number("spec.slotsPerWorker", "spec.trainer.numProcPerNode"),
    "image": Setting(check_image, set_image),
    "command": Setting(check_command, set_command),
    "cpu": size("cpu"),
    "memory": size("memory"),
    "gpu": Setting(check_amount(NVIDIA_GPU), set_gpus),
    "env": Setting(lambda value: problems_of_env(value, removes=True), set_env),
    "labels": Setting(lambda value: problems_of_labels("labels", value, removes=True), set_labels),
    "queue": Setting(check_queue, set_queue),
    "runtime": Setting(check_runtime, set_runtime),
    "deadline": Setting(check_deadline, set_deadline),
    "suspend": Setting(check_suspend, set_suspend),
}


def set_path(manifest: Json, path: str, value: Any) -> None:
    """Set the field at a path such as ``spec.mpiReplicaSpecs.Worker.template.spec.containers[0].image``.

    What is in brackets is an entry of a list, or a name with dots. None takes the field out.
    """
    steps = [bracketed or plain for bracketed, plain in STEP.findall(path)]
    at: Any = manifest
    for step in steps[:-1]:
        at = entry(at, step, path) if isinstance(at, list) else at.setdefault(step, {})
        if not isinstance(at, dict | list):
            raise ChangeError(f"{path}: {step} is a value and no object")
    last = steps[-1]
    if isinstance(at, list):
        entry(at, last, path)
        at[int(last)] = value
    elif value is None:
        at.pop(last, None)
    else:
        at[last] = value


def entry(items: list[Any], step: str, path: str) -> Any:
    """Return an entry of a list by its number."""
    if not step.isdigit() or int(step) >= len(items):
        raise ChangeError(f"{path}: there is no entry {step}; the list has {len(items)}")
    return items[int(step)]


def suspension(kind: str, to: bool) -> Json:
    """Return the change that suspends or resumes a job."""
    change: Json = {}
    set_path(change, suspend_path(kind), to)
    return change


def written_again(job: Json) -> Json:
    """Return a job that was read from the cluster as it can be created anew."""
    manifest = as_written(job)
    if is_suspended(job):
        set_path(manifest, suspend_path(job["kind"]), True)
    if is_suspended_in_queue(job):
        manifest["metadata"].setdefault("annotations", {})[ANNOTATION_SUSPEND_IN_QUEUE] = "true"
    return manifest


def of_remedy(remedy: Remedy, job: Json | None) -> dict[str, Any] | None:
    """Return the changes of a job that apply a remedy; None if it is only a text, or if its changes do not fit the job.

    No changes mean that the job has to be run again as it is.
    """
    if job is None or not remedy.rerun:
        return None
    changes: dict[str, Any] = {}
    for change in remedy.changes:
        if change.field.startswith("env."):
            changes.setdefault("env", {})[change.field.removeprefix("env.")] = change.value
        else:
            path = ".".join(bracketed or plain for bracketed, plain in STEP.findall(change.field))
            changes[WORDS.get(path, change.field)] = yaml.safe_load(change.value)
    if replaces_resources(job, changes) or apply(as_written(job), changes):
        return None
    return changes


def replaces_resources(job: Json, changes: Mapping[str, Any]) -> bool:
    """Return whether changes give a TrainJob resources of its own: they replace all of its runtime, GPUs included."""
    if job["kind"] != TRAIN_JOB.kind or (job["spec"].get("trainer") or {}).get("resourcesPerNode"):
        return False
    return any(field.startswith("spec.trainer.resourcesPerNode") for field in changes)
