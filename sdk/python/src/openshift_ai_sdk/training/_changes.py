"""Changes of a job's manifest, by the words that ``kubectl odh mpijob clone --set`` takes, too."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import yaml

from openshift_ai_sdk.training import _pod_changes, _quantity
from openshift_ai_sdk.training._command import LaunchOptions, flags_of, is_command, split_launch, tag_of, words_of
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._duration import parse_duration
from openshift_ai_sdk.training._job_spec import (
    LARGEST,
    MOST_WORKERS,
    NOT_IN_TRAIN_JOBS,
    WITH_MPI,
    WITH_OURS,
    WITHOUT_QUEUE,
    JobSpec,
    is_given,
)
from openshift_ai_sdk.training._kinds import ANNOTATION_SUSPEND_IN_QUEUE, LABEL_QUEUE, TRAIN_JOB, is_train_job
from openshift_ai_sdk.training._manifest import (
    ANNOTATION_CONNECTIONS,
    ANNOTATION_MAX_RESTARTS,
    ANNOTATION_PREFERRED_TOPOLOGY,
    ANNOTATION_PRIORITY_CLASS,
    ANNOTATION_PROFILE,
    ANNOTATION_RDMA,
    ANNOTATION_REQUIRED_TOPOLOGY,
    ANNOTATION_SCHEDULE_TIMEOUT,
    ANNOTATION_TTL,
    ANNOTATION_WAIT_FOR_QUOTA,
    LABEL_PRIORITY,
    MLFLOW,
    launcher_resources,
    without_empty,
)
from openshift_ai_sdk.training._pods import OUTPUT_DIR, PREFER
from openshift_ai_sdk.training._resource_rules import NVIDIA_GPU
from openshift_ai_sdk.training._resources import as_resources, is_gpu, request_limits, resource_lists
from openshift_ai_sdk.training._similar import nearest
from openshift_ai_sdk.training._trainer_runtime import SINCE_PATCHES, SINCE_V22, jobs_of, problems_of_options
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
        in_pods: Makes the change in a manifest besides its pods, and returns that of each pod.
    """

    check: Callable[[Any], str | list[Problem]]
    write: Callable[[Json, Any], None] | None = None
    in_pods: Callable[[Json, Any], _pod_changes.Change] | None = None


# What is wrong with a change of flags if there are none to change.
OWN_LAUNCH = "cannot be changed: the command has no mpirun that was added to it; change the command"
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


def apply(
    manifest: Json, changes: Mapping[str, Any], runtime: Json | None = None, overrides: bool = False
) -> list[Problem]:
    """Make changes in a manifest, and return what is wrong with them.

    Args:
        manifest: The job, which is changed.
        changes: The changes by their names.
        runtime: The runtime of a TrainJob. If it is unknown, the caller fits changes of pods to it (fit_patch).
        overrides: Whether the cluster has Kubeflow Trainer v2.1, whose TrainJobs have podTemplateOverrides.
    """
    problems = problems_of(changes)
    if problems:
        return problems
    if is_train_job(manifest):
        problems = [Problem(name, NOT_IN_TRAIN_JOBS[name]) for name in changes if name in NOT_IN_TRAIN_JOBS]
        if runtime is not None:
            problems += problems_of_options(runtime, applied_by_runtime(manifest, changes), changes.get("workdir"))
        problems += [Problem(name, SINCE_PATCHES) for name in given_in(changes) if overrides and name in SINCE_V22]
        if problems:
            return problems
    pods = None if runtime is None else _pod_changes.RuntimePods(*jobs_of(runtime), overrides)
    for name, value in sorted(changes.items(), key=lambda change: change[0] not in FIRST):
        try:
            if name in SETTINGS:
                setting = SETTINGS[name]
                if setting.write is not None:
                    setting.write(manifest, value)
                if setting.in_pods is not None:
                    _pod_changes.change_pods(manifest, pods, setting.in_pods(manifest, value))
            else:
                set_path(manifest, name, value)
        except ChangeError as error:
            problems.append(Problem(name, str(error)))
    suspend_in_queue(manifest)
    return problems


def given_in(changes: Mapping[str, Any]) -> list[str]:
    """Return the changes that set something."""
    return [name for name, value in changes.items() if is_given(value)]


def queue_of(manifest: Json) -> str | None:
    """Return the name of the queue of a job; None without one."""
    name: str | None = (manifest["metadata"].get("labels") or {}).get(LABEL_QUEUE)
    return name


def applied_by_runtime(manifest: Json, changes: Mapping[str, Any]) -> list[str]:
    """Return the changes that set something, without those that Kueue applies to a job in a queue."""
    is_queued = bool(changes.get("queue", queue_of(manifest)))
    return [name for name in given_in(changes) if not (is_queued and name in WITHOUT_QUEUE)]


def needs_runtime(manifest: Json, changes: Mapping[str, Any]) -> bool:
    """Return whether changes of a job depend on its runtime."""
    settings = [SETTINGS[name] for name in changes if name in SETTINGS]
    in_pods = any(setting.in_pods is not None for setting in settings)
    depends = {*WITH_MPI, *WITH_OURS, *WITHOUT_QUEUE}
    return is_train_job(manifest) and (in_pods or not depends.isdisjoint(applied_by_runtime(manifest, changes)))


def suspend_in_queue(manifest: Json) -> None:
    """Set the annotation that suspends a job in a queue, also in a default queue, if its field suspend is set."""
    meta = manifest["metadata"]
    if is_suspended(manifest):
        meta["annotations"] = {**(meta.get("annotations") or {}), ANNOTATION_SUSPEND_IN_QUEUE: "true"}


def number(mpi_path: str, train_path: str, most: int = LARGEST) -> Setting:
    """Return a change of a number from 1 on."""

    def check(value: object) -> str:
        count = whole(value)
        if count is None:
            return f"{value!r} is not allowed; use a whole number, 1 or more"
        if count > most:
            return f"{value!r} is not allowed; use 1 to {most}"
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
    labels = {**(manifest["metadata"].get("labels") or {}), **value}
    kept = {name: item for name, item in labels.items() if item is not None}
    _pod_changes.set_or_drop(manifest["metadata"], "labels", kept)


def set_env(manifest: Json, value: Any) -> None:
    """Change variables of every rank; None takes one out."""
    targets = (
        [manifest["spec"].setdefault("trainer", {})]
        if is_train_job(manifest)
        else list(main_containers(manifest, BOTH_ROLES))
    )
    for target in targets:
        kept = [entry for entry in target.get("env") or [] if entry["name"] not in value]
        kept += [{"name": name, "value": item} for name, item in value.items() if item is not None]
        _pod_changes.set_or_drop(target, "env", kept)


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


def check_option(name: str) -> Callable[[Any], list[Problem]]:
    """Return the check of an option that MPIJob has, too; None sets it back to what it is by default."""

    def check(value: Any) -> list[Problem]:
        if value is None and name not in NEVER_NONE:
            return []
        if isinstance(value, Mapping) and name in ("annotations", "node_selector"):
            value = {key: item for key, item in value.items() if item is not None}
        options: dict[str, Any] = {"image": "image", "command": "command", name: value}
        problems = JobSpec(name="job", **options).problems()
        return [problem for problem in problems if re.split(r"[.\[]", problem.field)[0] == name]

    return check


def option(name: str, write: Callable[[Json, Any], None]) -> Setting:
    """Return the change of an option that MPIJob has, too."""
    return Setting(check_option(name), write)


def of_pods(name: str, change: Callable[[Any], _pod_changes.Change]) -> Setting:
    """Return the change of an option of all pods."""
    return Setting(check_option(name), in_pods=lambda _manifest, value: change(value))


def annotate(manifest: Json, value: Mapping[str, str | None]) -> None:
    """Change annotations; None takes one out."""
    annotations = {**(manifest["metadata"].get("annotations") or {}), **value}
    kept = {name: text for name, text in annotations.items() if text is not None}
    _pod_changes.set_or_drop(manifest["metadata"], "annotations", kept)


def annotation(key: str, text_of: Callable[[Any], str | None]) -> Callable[[Json, Any], None]:
    """Return the change of an option that is an annotation of jobs of both kinds."""
    return lambda manifest, value: annotate(manifest, {key: None if value is None else text_of(value)})


def seconds_of(value: Any) -> str:
    """Return a duration as an annotation has it."""
    return str(math.ceil(parse_duration(value)))


def when(value: bool) -> str | None:
    """Return a switch as an annotation has it."""
    return "true" if value else None


def set_connections(manifest: Json, value: Any) -> None:
    """Add data connections; None takes all out."""
    before = (manifest["metadata"].get("annotations") or {}).get(ANNOTATION_CONNECTIONS) or ""
    names = [name.strip() for name in before.split(",") if name.strip()]
    wanted = [] if value is None else dict.fromkeys([*names, *value])
    annotate(manifest, {ANNOTATION_CONNECTIONS: ",".join(wanted) or None})


def set_topology(manifest: Json, value: Any) -> None:
    """Change the node label by which all pods run in one domain."""
    found: dict[str, str | None] = {ANNOTATION_REQUIRED_TOPOLOGY: None, ANNOTATION_PREFERRED_TOPOLOGY: None}
    if value:
        key = ANNOTATION_PREFERRED_TOPOLOGY if value.startswith(PREFER) else ANNOTATION_REQUIRED_TOPOLOGY
        found[key] = value.removeprefix(PREFER)
    annotate(manifest, found)


def set_priority(manifest: Json, value: Any) -> None:
    """Change the PriorityClass of the pods, of a TrainJob in a queue its priority there."""
    if not is_train_job(manifest):
        _pod_changes.change_pods(manifest, None, _pod_changes.field_of("priorityClassName", value))
        return
    is_queued = bool(queue_of(manifest))
    set_labels(manifest, {LABEL_PRIORITY: value if is_queued else None})
    annotate(manifest, {ANNOTATION_PRIORITY_CLASS: None if is_queued else value})


def set_retries(manifest: Json, value: Any) -> None:
    """Change how often a failed job is tried again."""
    if is_train_job(manifest):
        annotate(manifest, {ANNOTATION_MAX_RESTARTS: None if value is None else str(value)})
        return
    policy = manifest["spec"].setdefault("runPolicy", {})
    before, policy["backoffLimit"] = policy.get("backoffLimit"), value or 0
    worker = manifest["spec"]["mpiReplicaSpecs"].get("Worker")
    if worker is not None and bool(before) != bool(value):
        # Without it, a retry would lack the workers that failed.
        _pod_changes.set_or_drop(worker, "restartPolicy", "OnFailure" if value else None)


def set_ttl(manifest: Json, value: Any) -> None:
    """Change when the job is deleted after its end."""
    if is_train_job(manifest):
        annotate(manifest, {ANNOTATION_TTL: None if value is None else seconds_of(value)})
    else:
        set_path(manifest, "spec.runPolicy.ttlSecondsAfterFinished", None if value is None else int(seconds_of(value)))


def set_gang_timeout(manifest: Json, value: Any) -> None:
    """Change after what time an attempt to schedule all pods together ends."""
    if is_train_job(manifest):
        annotate(manifest, {ANNOTATION_SCHEDULE_TIMEOUT: None if value is None else seconds_of(value)})
        return
    policy = manifest["spec"].setdefault("runPolicy", {})
    scheduling = {**(policy.get("schedulingPolicy") or {})}
    scheduling.pop("scheduleTimeoutSeconds", None)
    if value is not None:
        scheduling["scheduleTimeoutSeconds"] = int(seconds_of(value))
    _pod_changes.set_or_drop(policy, "schedulingPolicy", scheduling)


def launcher_of(manifest: Json) -> Json:
    """Return the part of a job that has the launcher's command."""
    if is_train_job(manifest):
        trainer: Json = manifest["spec"].setdefault("trainer", {})
        return trainer
    return next(iter(main_containers(manifest, ["Launcher"])), {})


def command_in(manifest: Json) -> Json:
    """Return the launcher's command and its arguments."""
    holder = launcher_of(manifest)
    return {"command": list(holder.get("command") or []), "args": list(holder.get("args") or [])}


def launch_again(manifest: Json, change: Callable[[str, list[str]], list[str]]) -> bool:
    """Change the flags of the mpirun that was put before a job's command, and return whether it has one.

    Args:
        manifest: The job, which is changed.
        change: Takes the tag of output and further flags, and returns all flags.
    """
    holder = launcher_of(manifest)
    parts = split_launch([str(word) for word in [*(holder.get("command") or []), *(holder.get("args") or [])]])
    if parts is None:
        return False
    tag, flags, rest = parts
    holder["command"] = ["mpirun", *change(tag, flags), *rest]
    holder.pop("args", None)
    return True


def folder_in(manifest: Json, flags: list[str]) -> int:
    """Return how many of mpirun's flags are the working folder of a TrainJob, which has no field for it."""
    return 2 if is_train_job(manifest) and flags[:1] in (["--wdir"], ["-wdir"]) else 0


def set_mpi_flags(manifest: Json, value: Any) -> None:
    """Change the further flags of mpirun."""
    wanted = flags_of(value or ())
    if not launch_again(manifest, lambda tag, flags: [tag, *flags[: folder_in(manifest, flags)], *wanted]):
        raise ChangeError(OWN_LAUNCH)


def set_workdir(manifest: Json, value: Any) -> None:
    """Change the working folder of the programs."""
    if not is_train_job(manifest):
        for container in main_containers(manifest, BOTH_ROLES):
            _pod_changes.set_or_drop(container, "workingDir", value)
        return

    def change(tag: str, flags: list[str]) -> list[str]:
        folder = LaunchOptions(workdir=value).words("mpich" if tag == tag_of("mpich") else None)
        return [tag, *folder, *flags[folder_in(manifest, flags) :]]

    if not launch_again(manifest, change):
        raise ChangeError(OWN_LAUNCH)


def set_implementation(manifest: Json, value: Any) -> None:
    """Change the MPI implementation in the image of an MPIJob."""
    set_path(manifest, "spec.mpiImplementation", JobSpec("job", mpi_implementation=value).implementation())
    launch_again(manifest, lambda tag, flags: [tag_of(value), *flags])


def set_launcher_resources(manifest: Json, value: Any) -> None:
    """Change the size of the launcher of an MPIJob."""
    for container in main_containers(manifest, ["Launcher"]):
        size = without_empty(launcher_resources(JobSpec("job", launcher_resources=value)))
        _pod_changes.set_or_drop(container, "resources", size)


def set_resources(manifest: Json, value: Any) -> None:
    """Change what each worker has of some resources. GPUs take the place of those of another kind."""
    if value is None:
        return
    size = as_resources(value)
    lists = resource_lists(size)
    for target in worker_sizes(manifest):
        for part in ("requests", "limits"):
            kept = {
                name: amount
                for name, amount in (target.get(part) or {}).items()
                if not (size.gpu and is_gpu(name)) and not (part == "limits" and name in lists["requests"])
            }
            # A limit of CPUs that the job has follows its request.
            follows = [name for name in lists["requests"] if part == "limits" and name in (target.get(part) or {})]
            wanted = {**{name: lists["requests"][name] for name in follows}, **lists[part]}
            _pod_changes.set_or_drop(target, part, {**kept, **wanted})


def set_output_dir(manifest: Json, value: Any) -> _pod_changes.Change:
    """Change the claim for results: the variable with its path, and in pods the mount."""
    holders = [launcher_of(manifest)] if is_train_job(manifest) else main_containers(manifest, BOTH_ROLES)
    variables = [entry for holder in holders for entry in holder.get("env") or [] if entry["name"] == OUTPUT_DIR]
    before = next((str(entry["value"]) for entry in variables if entry.get("value")), None)
    set_env(manifest, {OUTPUT_DIR: None if value is None else value.partition(":")[2]})
    return _pod_changes.output_dir(value, str(manifest["metadata"]["name"]), before)


# Options of which None is no value.
NEVER_NONE = ("volumes", "volume_mounts", "annotations", "node_selector", "profile", "wait_for_quota")

SETTINGS: dict[str, Setting] = {
    "workers": number("spec.mpiReplicaSpecs.Worker.replicas", "spec.trainer.numNodes", MOST_WORKERS),
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
    "resources": option("resources", set_resources),
    "launcher_resources": option("launcher_resources", set_launcher_resources),
    "mpi_implementation": option("mpi_implementation", set_implementation),
    "mpi_flags": option("mpi_flags", set_mpi_flags),
    "workdir": option("workdir", set_workdir),
    "priority": option("priority", set_priority),
    "connections": option("connections", set_connections),
    "mlflow_tracking_uri": option("mlflow_tracking_uri", lambda manifest, value: set_env(manifest, {MLFLOW: value})),
    "annotations": option("annotations", annotate),
    "retries": option("retries", set_retries),
    "ttl": option("ttl", set_ttl),
    "topology": option("topology", set_topology),
    "rdma": option("rdma", annotation(ANNOTATION_RDMA, str)),
    "profile": option("profile", annotation(ANNOTATION_PROFILE, when)),
    "wait_for_quota": option("wait_for_quota", annotation(ANNOTATION_WAIT_FOR_QUOTA, when)),
    "gang_timeout": option("gang_timeout", set_gang_timeout),
    "volumes": of_pods("volumes", _pod_changes.volumes),
    "volume_mounts": of_pods("volume_mounts", _pod_changes.volume_mounts),
    "shm": of_pods("shm", _pod_changes.shm),
    "output_dir": Setting(check_option("output_dir"), in_pods=set_output_dir),
    "node_selector": of_pods("node_selector", _pod_changes.node_selector),
    "tolerations": of_pods("tolerations", _pod_changes.tolerations),
    "image_pull_secrets": of_pods("image_pull_secrets", _pod_changes.image_pull_secrets),
    "service_account": of_pods("service_account", partial(_pod_changes.field_of, "serviceAccountName")),
    "grace_period": of_pods("grace_period", _pod_changes.grace_period),
    "run_as_user": of_pods("run_as_user", _pod_changes.run_as_user),
}
# The changes of flags of mpirun.
FLAGS = frozenset(("mpi_flags", "workdir", "mpi_implementation"))
# The changes that are made first, because others need them.
FIRST = ("command", "queue", "runtime", "mpi_implementation", "volumes")


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

    They do not if they change nothing, either. No changes mean that the job has to be run again as it is.
    """
    if job is None or not remedy.rerun:
        return None
    changes: dict[str, Any] = {}
    for change in remedy.changes:
        if change.field.startswith("env."):
            # An empty value removes the variable.
            changes.setdefault("env", {})[change.field.removeprefix("env.")] = change.value or None
        else:
            path = ".".join(bracketed or plain for bracketed, plain in STEP.findall(change.field))
            changes[WORDS.get(path, change.field)] = yaml.safe_load(change.value)
    changed = as_written(job)
    if replaces_resources(job, changes) or apply(changed, changes) or (changes and changed == as_written(job)):
        return None
    return changes


def replaces_resources(job: Json, changes: Mapping[str, Any]) -> bool:
    """Return whether changes give a TrainJob resources of its own: they replace all of its runtime, GPUs included."""
    if job["kind"] != TRAIN_JOB.kind or (job["spec"].get("trainer") or {}).get("resourcesPerNode"):
        return False
    return any(field.startswith("spec.trainer.resourcesPerNode") for field in changes)
