"""From the options of a job to its manifest: the same one that ``kubectl odh mpijob create`` writes."""

from __future__ import annotations

import difflib
import math
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import PurePath, PurePosixPath
from typing import Any

from openshift_ai_sdk.training import _quantity, _schema
from openshift_ai_sdk.training._api import Resource
from openshift_ai_sdk.training._transport import Json
from openshift_ai_sdk.training.errors import InvalidJobError, Problem
from openshift_ai_sdk.training.models import ResourceRequirements

MPI_JOB = Resource("kubeflow.org/v2beta1", "MPIJob", "mpijobs")
TRAIN_JOB = Resource("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs")
KINDS = {resource.kind: resource for resource in (MPI_JOB, TRAIN_JOB)}

LABEL_QUEUE = "kueue.x-k8s.io/queue-name"
LABEL_PRIORITY = "kueue.x-k8s.io/priority-class"
ANNOTATION_CONNECTIONS = "opendatahub.io/connections"
ANNOTATION_MAX_RESTARTS = "mpi.opendatahub.io/max-restarts"
ANNOTATION_TTL = "mpi.opendatahub.io/ttl-seconds-after-finished"
ANNOTATION_RDMA = "mpi.opendatahub.io/rdma"

IMPLEMENTATIONS = ("OpenMPI", "Intel", "MPICH")
# A command that has one of these starts ranks by itself and is run as it is.
LAUNCHERS = {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "horovodrun", "deepspeed"}

Command = str | Sequence[str]
Duration = str | float | timedelta

RESOURCE = re.compile(r"ephemeral-storage|hugepages-.+|[^/]+/[^/]+")
DEVICE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?", re.ASCII)
RESOURCE_RULE = "use cpu, memory, gpu, ephemeral-storage, or a name with a domain, such as 'nvidia.com/gpu'"
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
NAMESPACE = re.compile(r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
VARIABLE = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
# The name of an image: [registry[:port]/]path[:tag][@digest].
IMAGE = re.compile(
    r"(?:(?:[a-zA-Z0-9](?:[-a-zA-Z0-9.]*[a-zA-Z0-9])?|\[[0-9a-fA-F:]+\])(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
    r"(?::\w[\w.-]{0,127})?(?:@[a-z][a-z0-9+._-]*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
VOLUME_NAME = re.compile(r"(?=.{1,63}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?")
VOLUME_NAME_RULE = "use up to 63 lower-case letters, digits and '-', with a letter or digit at both ends"
OBJECT_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
OBJECT_NAME_RULE = "use lower-case letters, digits, '-' and '.', with a letter or digit at both ends"
QUALIFIED_NAME = re.compile(r"(?:[a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?(?=.{1,63}$)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
QUALIFIED = "use up to 63 letters, digits, '-', '_' and '.', if needed behind a domain and '/'"
LABEL_VALUE = re.compile(r"(?=.{0,63}$)([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|d|h|m|s)")
# How many bytes the annotations of an object may have.
ANNOTATIONS = 256 << 10
# The longest time in a field of 32 bits, in seconds.
LONGEST_TIMEOUT = 2**31 - 1
# The flags of mpirun that set the number of ranks.
RANK_FLAGS = {"-n", "--n", "-np", "--np", "-c", "--c"}
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True)
class JobSpec:
    """A job as its user describes it. The arguments are documented at MPIJob."""

    name: str
    workers: int = 1
    image: str | None = None
    command: Command | None = None
    resources: ResourceRequirements | Mapping[str, int | float | str] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    slots_per_worker: int | None = None
    mpi_implementation: str | None = None
    mpi_flags: Command = ()
    runtime: str | None = None
    queue: str | None = None
    priority: str | None = None
    connections: Sequence[str] = ()
    volumes: Sequence[Mapping[str, Any]] = ()
    volume_mounts: Sequence[Mapping[str, Any]] = ()
    node_selector: Mapping[str, str] = field(default_factory=dict)
    launcher_resources: ResourceRequirements | Mapping[str, int | float | str] | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    run_as_user: int | None = None
    retries: int | None = None
    deadline: Duration | None = None
    ttl: Duration | None = None
    rdma: str | None = None
    gang_timeout: Duration | None = None
    suspend: bool = False
    mlflow_tracking_uri: str | None = None

    @property
    def kind(self) -> str:
        """TrainJob where a runtime is named, else MPIJob."""
        return TRAIN_JOB.kind if self.runtime else MPI_JOB.kind

    def manifest(self, namespace: str | None) -> Json:
        """Return the job's object.

        Raises:
            InvalidJobError: With all problems at once.
        """
        problems = self.problems_in(namespace)
        if problems:
            raise InvalidJobError(problems)
        return self._train_job(namespace) if self.runtime else self._mpi_job(namespace)

    def problems_in(self, namespace: str | None) -> list[Problem]:
        """Return everything that is wrong with the options, and with the namespace."""
        problems = self.problems()
        if namespace is not None and not (isinstance(namespace, str) and NAMESPACE.fullmatch(namespace)):
            allowed = "use up to 63 lower-case letters, digits and '-', with a letter or digit at both ends"
            problems.append(Problem("namespace", f"{namespace!r} is not allowed; {allowed}"))
        return problems

    def problems(self) -> list[Problem]:
        """Return everything that is wrong with the options, in the order of the options."""
        found = [*self._of_name(), *self._of_numbers(), *self._of_program()]
        for label, sizes in (("resources", self.resources), ("launcher_resources", self.launcher_resources)):
            found += problems_of_resources(label, sizes)
        found += [*self._of_mappings(), *self._of_volumes(), *self._of_names()]
        if self.runtime:
            found += self._of_runtime()
        return found

    def _of_name(self) -> list[Problem]:
        if not isinstance(self.name, str) or not DNS_LABEL.fullmatch(self.name):
            return [
                Problem(
                    "name",
                    f"{self.name!r} is not allowed; use lower-case letters, digits and '-', with a letter first and no "
                    "'-' at the end",
                )
            ]
        longest = 63 - len(f"-worker-{max(whole(self.workers) or 1, 1) - 1}")
        if len(self.name) > longest:
            return [
                Problem(
                    "name",
                    f"{self.name!r} has {len(self.name)} characters; with {self.workers} workers at most {longest} are "
                    "allowed, since the names of pods and hosts begin with it",
                )
            ]
        return []

    def _of_numbers(self) -> list[Problem]:
        found = []
        for label, value, least in (
            ("workers", self.workers, 1),
            ("slots_per_worker", self.slots_per_worker, 1),
            ("run_as_user", self.run_as_user, 1),
            ("retries", self.retries, 0),
        ):
            if value is None and label != "workers":
                continue
            number = whole(value)
            if number is None or number < least:
                kind = "a whole number, " if number is None else ""
                found.append(Problem(label, f"{value!r} is not allowed; use {kind}{least} or more"))
        if self.rdma is not None and self.rdma not in ("required", "optional"):
            found.append(Problem("rdma", f"{self.rdma!r} is not allowed; use 'required' or 'optional'"))
        if not isinstance(self.suspend, bool):
            found.append(Problem("suspend", f"{self.suspend!r} is not allowed; use True or False"))
        for label, duration, least, longest, example in (
            ("deadline", self.deadline, 1, math.inf, "'4h' or 3600"),
            ("ttl", self.ttl, 0, LONGEST_TIMEOUT, "'24h' or 86400"),
            ("gang_timeout", self.gang_timeout, 1, LONGEST_TIMEOUT, "'10m' or 600"),
        ):
            if duration is not None and not is_duration(duration, least, longest):
                shortest = "1 second" if least else "0 seconds"
                limit = "" if longest == math.inf else f", at most {longest}"
                text = f"{duration!r} is not allowed; use {shortest} or more{limit}, such as {example}"
                found.append(Problem(label, text))
        return found

    def _of_program(self) -> list[Problem]:
        found = []
        if not self.image and not self.runtime:
            found.append(Problem("image", "is missing; name an image, or a runtime, which brings one"))
        elif self.image and (text := problem_of_image(self.image)):
            found.append(Problem("image", text))
        if not self.command or (isinstance(self.command, str) and not self.command.strip()):
            found.append(Problem("command", "is missing; use 'python train.py' or ['python', 'train.py']"))
        elif not is_command(self.command):
            allowed = "use text, or a list of text, such as ['python', 'train.py']"
            found.append(Problem("command", f"{self.command!r} is not allowed; {allowed}"))
        else:
            try:
                words_of(self.command)
            except ValueError as error:
                found.append(Problem("command", f"{self.command!r} cannot be read: {error}"))
        found += problems_of_flags(self.mpi_flags, self.command)
        if self.mpi_implementation is not None and self._implementation() is None:
            allowed = ", ".join(IMPLEMENTATIONS)
            found.append(
                Problem("mpi_implementation", f"{self.mpi_implementation!r} is not allowed; use one of {allowed}")
            )
        return found

    def _of_mappings(self) -> list[Problem]:
        return [
            *problems_of_env(self.env),
            *problems_of_labels("labels", self.labels),
            *problems_of_texts(
                "annotations", self.annotations, QUALIFIED_NAME, f"an annotation; {QUALIFIED}", longest=ANNOTATIONS
            ),
            *problems_of_labels("node_selector", self.node_selector),
        ]

    def _of_volumes(self) -> list[Problem]:
        found = []
        for label, items, needed, example in (
            ("volumes", self.volumes, ("name",), {"name": "data", "emptyDir": {}}),
            ("volume_mounts", self.volume_mounts, ("name", "mountPath"), {"name": "data", "mountPath": "/data"}),
        ):
            if isinstance(items, str | Mapping) or not isinstance(items, Sequence):
                found.append(Problem(label, f"{items!r} is not allowed; use a list, such as [{example}]"))
                continue
            seen: set[object] = set()
            for index, item in enumerate(items):
                field = f"{label}[{index}]"
                if not isinstance(item, Mapping):
                    found.append(Problem(field, f"{item!r} is not allowed; use {example}"))
                    continue
                if missing := [key for key in needed if not item.get(key)]:
                    found.append(Problem(field, f"{' and '.join(missing)} missing; use {example}"))
                    continue
                found += problems_of_volume(field, item) if label == "volumes" else problems_of_mount(field, item)
                if str(item[needed[-1]]) in seen:
                    found.append(Problem(f"{field}.{needed[-1]}", f"{item[needed[-1]]!r} is used twice"))
                seen.add(str(item[needed[-1]]))
        return found

    def _of_names(self) -> list[Problem]:
        """Return what is wrong with the names of other objects."""
        found = []
        for label, value, of in (
            ("runtime", self.runtime, "a runtime"),
            ("queue", self.queue, "a LocalQueue"),
            ("priority", self.priority, "a PriorityClass"),
        ):
            if value is not None and not is_object_name(value):
                found.append(Problem(label, f"{value!r} is not the name of {of}; {OBJECT_NAME_RULE}"))
        if isinstance(self.connections, str) or not isinstance(self.connections, Sequence):
            text = f"{self.connections!r} is not allowed; use a list, such as ['my-connection']"
            found.append(Problem("connections", text))
        else:
            for index, name in enumerate(self.connections):
                if not is_object_name(name):
                    text = f"{name!r} is not the name of a data connection; {OBJECT_NAME_RULE}"
                    found.append(Problem(f"connections[{index}]", text))
        uri = self.mlflow_tracking_uri
        if uri is not None and (not isinstance(uri, str) or not uri or re.search(r"\s", uri)):
            found.append(
                Problem(
                    "mlflow_tracking_uri", f"{uri!r} is not allowed; use a URL, such as 'https://mlflow.example.com'"
                )
            )
        return found

    def _of_runtime(self) -> list[Problem]:
        """Return the options that a TrainJob has no field for."""
        found = []
        for label, given, instead in (
            ("mpi_implementation", self.mpi_implementation, "the runtime determines the MPI"),
            ("mpi_flags", self.mpi_flags, "write the flags in the command: 'mpirun --bind-to core python train.py'"),
            ("run_as_user", self.run_as_user, "the runtime determines the user of its pods"),
            ("gang_timeout", self.gang_timeout, "the runtime determines how pods are scheduled"),
            ("volumes", self.volumes, "the runtime determines the volumes of its pods"),
            ("volume_mounts", self.volume_mounts, "the runtime determines the volumes of its pods"),
            ("node_selector", self.node_selector, "the runtime determines the nodes of its pods"),
            ("launcher_resources", self.launcher_resources, "the runtime determines the launcher's resources"),
        ):
            if given:
                found.append(Problem(label, f"cannot be combined with runtime; {instead}"))
        if self.priority and not self.queue:
            found.append(Problem("priority", "needs a queue: a TrainJob has a priority in a queue alone"))
        return found

    def _implementation(self) -> str | None:
        wanted = str(self.mpi_implementation).lower()
        return next((known for known in IMPLEMENTATIONS if known.lower() == wanted), None)

    def _sizes(self) -> ResourceRequirements:
        return as_resources(self.resources)

    @property
    def slots(self) -> int:
        """Ranks that a worker takes: as many as it has GPUs, or one, unless slots_per_worker says otherwise."""
        return self.slots_per_worker or self._sizes().gpu or 1

    def _environment(self) -> list[Json]:
        env = dict(self.env)
        if self.mlflow_tracking_uri:
            env.setdefault("MLFLOW_TRACKING_URI", self.mlflow_tracking_uri)
        return [{"name": name, "value": value} for name, value in env.items()]

    def _metadata(self, namespace: str | None) -> Json:
        labels, annotations = dict(self.labels), dict(self.annotations)
        if self.queue:
            labels[LABEL_QUEUE] = self.queue
        if self.runtime and self.priority:
            labels[LABEL_PRIORITY] = self.priority
        if self.connections:
            annotations[ANNOTATION_CONNECTIONS] = ",".join(self.connections)
        if self.rdma is not None:
            annotations[ANNOTATION_RDMA] = self.rdma
        if self.runtime and self.retries is not None:
            annotations[ANNOTATION_MAX_RESTARTS] = str(self.retries)
        if self.runtime and self.ttl is not None:
            annotations[ANNOTATION_TTL] = str(math.ceil(parse_duration(self.ttl)))
        return {"name": self.name, "namespace": namespace, "labels": labels, "annotations": annotations}

    def _mpi_job(self, namespace: str | None) -> Json:
        command = launched(
            words_of(self.command or ""), self.slots * self.workers, self.mpi_implementation, flags_of(self.mpi_flags)
        )
        worker: Json = {
            "name": "worker",
            "image": self.image,
            "env": self._environment(),
            "resources": resource_lists(self._sizes()),
            "volumeMounts": [dict(mount) for mount in self.volume_mounts],
            "securityContext": self._security(),
        }
        launcher: Json = {
            "name": "launcher",
            "image": self.image,
            "command": command,
            "env": self._environment(),
            "resources": self._launcher_sizes(),
            "securityContext": self._security(),
        }
        pod: Json = {"priorityClassName": self.priority, "nodeSelector": dict(self.node_selector)}
        policy: Json = {"cleanPodPolicy": "Running", "backoffLimit": self.retries or 0}
        if self.deadline is not None:
            policy["activeDeadlineSeconds"] = math.ceil(parse_duration(self.deadline))
        if self.ttl is not None:
            policy["ttlSecondsAfterFinished"] = math.ceil(parse_duration(self.ttl))
        if self.gang_timeout is not None:
            timeout = math.ceil(parse_duration(self.gang_timeout))
            policy["schedulingPolicy"] = {"scheduleTimeoutSeconds": timeout}
        if self.suspend:
            policy["suspend"] = True
        manifest: Json = without_empty(
            {
                "apiVersion": MPI_JOB.api_version,
                "kind": MPI_JOB.kind,
                "metadata": self._metadata(namespace),
                "spec": {
                    "slotsPerWorker": self.slots,
                    "mpiImplementation": self._implementation() if self.mpi_implementation else None,
                    "runPolicy": policy,
                    "mpiReplicaSpecs": {
                        "Launcher": {
                            # A launcher that is started again in its pod has its log written over.
                            "restartPolicy": "Never",
                            "template": {"spec": {**pod, "containers": [launcher]}},
                        },
                        "Worker": {
                            "replicas": self.workers,
                            # Without it, a retry would lack the workers that failed.
                            "restartPolicy": "OnFailure" if self.retries else None,
                            "template": {"spec": {**pod, "containers": [worker]}},
                        },
                    },
                },
            }
        )
        if volumes := self._volumes():
            # An empty object is meaningful here: emptyDir.
            manifest["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["volumes"] = volumes
        return manifest

    def _security(self) -> Json:
        """Return the security context of pods that need no rights: with the operator's agent none does."""
        return {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
            "runAsNonRoot": True if self.run_as_user else None,
            "runAsUser": self.run_as_user,
        }

    def _launcher_sizes(self) -> Json:
        if self.launcher_resources is not None:
            return resource_lists(as_resources(self.launcher_resources))
        return {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}}

    def _volumes(self) -> list[Json]:
        """Return the volumes; a mount of a name that no volume has means the PersistentVolumeClaim of that name."""
        volumes = [dict(volume) for volume in self.volumes]
        named = {volume["name"] for volume in volumes}
        for name in dict.fromkeys(str(mount["name"]) for mount in self.volume_mounts):
            if name not in named:
                volumes.append({"name": name, "persistentVolumeClaim": {"claimName": name}})
        return volumes

    def _train_job(self, namespace: str | None) -> Json:
        spec: Json = {
            "runtimeRef": {"name": self.runtime},
            "trainer": {
                "numNodes": self.workers,
                "image": self.image,
                "command": words_of(self.command or ""),
                "env": self._environment(),
                "numProcPerNode": self.slots_per_worker,
                "resourcesPerNode": resource_lists(self._sizes()),
            },
        }
        if self.deadline is not None:
            spec["activeDeadlineSeconds"] = math.ceil(parse_duration(self.deadline))
        if self.suspend:
            spec["suspend"] = True
        manifest: Json = without_empty(
            {
                "apiVersion": TRAIN_JOB.api_version,
                "kind": TRAIN_JOB.kind,
                "metadata": self._metadata(namespace),
                "spec": spec,
            }
        )
        return manifest


def has_parameter(text: str) -> bool:
    """Return whether a text has a parameter of a template, such as ${NAME}."""
    return "${" in text


def nearest(name: str, names: Iterable[str]) -> str:
    """Return a suggestion of names that are near one that does not exist; empty if none is."""
    near = difflib.get_close_matches(name, sorted(set(names)), n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def is_object_name(value: object) -> bool:
    """Return whether a value is the name of an object, or has a parameter of a template."""
    return isinstance(value, str) and (OBJECT_NAME.fullmatch(value) is not None or has_parameter(value))


def is_command(value: object) -> bool:
    """Return whether a value is text, or a list of text and numbers."""
    if isinstance(value, str):
        return True
    return isinstance(value, Sequence) and all(isinstance(word, str | int | float | PurePath) for word in value)


def problems_of_flags(flags: object, command: Command | None) -> list[Problem]:
    """Return what is wrong with flags of the mpirun that is put before a command."""
    if not is_command(flags):
        return [
            Problem("mpi_flags", f"{flags!r} is not allowed; use text, or a list of text, such as '--bind-to core'")
        ]
    try:
        words = flags_of(flags)
    except ValueError as error:
        return [Problem("mpi_flags", f"{flags!r} cannot be read: {error}")]
    if not words:
        return []
    if has_launcher(command):
        text = "cannot be combined with a command that starts ranks itself; write the flags in the command"
        return [Problem("mpi_flags", text)]
    if not words[0].startswith("-"):
        return [Problem("mpi_flags", f"{flags!r} is not allowed; use flags of mpirun, such as '--bind-to core'")]
    number = next((name for name in (word.partition("=")[0] for word in words) if name in RANK_FLAGS), None)
    if number:
        text = f"{flags!r} is not allowed: {number} sets the number of ranks; use workers and slots_per_worker"
        return [Problem("mpi_flags", text)]
    return []


def has_launcher(command: Command | None) -> bool:
    """Return whether a command can be read and starts ranks by itself."""
    try:
        return is_command(command) and starts_ranks(words_of(command or ""))
    except ValueError:
        return False


def flags_of(flags: Any) -> list[str]:
    """Return flags as a list of words. No shell reads them."""
    return shlex.split(flags) if isinstance(flags, str) else [str(word) for word in flags]


def is_duration(value: Duration, least: float, longest: float) -> bool:
    """Return whether a value is a duration between two numbers of seconds."""
    try:
        return least <= parse_duration(value) <= longest
    except ValueError:
        return False


def whole(value: object) -> int | None:
    """Return a whole number as it is, and None for anything else; True and False are none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def parse_duration(value: Duration) -> float:
    """Return a duration in seconds; text is such as ``90s``, ``1h30m`` or ``2d``.

    Raises:
        ValueError: It is not a duration, or it is below 0.

    Example:
        >>> parse_duration("1h30m")
        5400.0
    """
    if isinstance(value, timedelta):
        seconds = value.total_seconds()
    elif isinstance(value, str):
        parts = DURATION_PART.findall(value)
        if not parts or "".join(number + unit for number, unit in parts) != value:
            raise ValueError(f"{value!r} is not a duration; use seconds, or text such as '30s', '4h' or '1h30m'")
        seconds = sum(float(number) * UNITS[unit] for number, unit in parts)
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{value!r} is not a duration; use seconds, or text such as '30s', '4h' or '1h30m'")
    else:
        seconds = float(value)
    if seconds < 0 or not math.isfinite(seconds):
        raise ValueError(f"{value!r} is not allowed; use 0 or more")
    return seconds


def problem_of_image(image: object) -> str | None:
    """Return what is wrong with the name of an image; None if nothing is."""
    if isinstance(image, str) and (IMAGE.fullmatch(image) or has_parameter(image)):
        return None
    hint = "'quay.io/me/train:1'"
    if isinstance(image, str):
        bare = re.sub(r"^[a-z]+://", "", image.strip())
        near = next((name for name in (bare, bare.lower()) if name != image and IMAGE.fullmatch(name)), None)
        hint = repr(near) if near else hint
    return f"{image!r} is not allowed; use a name such as {hint}"


def problems_of_texts(
    label: str, pairs: object, is_name: re.Pattern[str], of: str, *, longest: int | None = None, removes: bool = False
) -> list[Problem]:
    """Return what is wrong with texts by name; with ``removes`` None is allowed as a value, too."""
    if not isinstance(pairs, Mapping):
        return [Problem(label, f"{pairs!r} is not allowed; use a mapping, such as {{'NAME': 'value'}}")]
    found = []
    for name, value in pairs.items():
        if not isinstance(name, str) or not (is_name.fullmatch(name) or has_parameter(name)):
            found.append(Problem(label, f"{name!r} is not the name of {of}"))
        elif not isinstance(value, str) and not (removes and value is None):
            text = f"{value!r} is not allowed; use text, such as {str(value)!r}"
            found.append(Problem(f"{label}[{name!r}]", text))
    size = sum(len(str(each).encode()) for pair in pairs.items() for each in pair)
    if longest is not None and size > longest:
        found.append(Problem(label, f"{size} bytes are not allowed; use {longest} or less in all"))
    return found


def problems_of_env(pairs: object, *, removes: bool = False) -> list[Problem]:
    """Return what is wrong with variables."""
    return problems_of_texts(
        "env", pairs, VARIABLE, "a variable; use letters, digits, '_', '-' and '.'", removes=removes
    )


def problems_of_labels(label: str, pairs: object, *, removes: bool = False) -> list[Problem]:
    """Return what is wrong with labels."""
    found = problems_of_texts(label, pairs, QUALIFIED_NAME, f"a label; {QUALIFIED}", removes=removes)
    for name, value in pairs.items() if isinstance(pairs, Mapping) else ():
        if isinstance(value, str) and not LABEL_VALUE.fullmatch(value) and not has_parameter(value):
            allowed = "use up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends"
            found.append(Problem(f"{label}[{name!r}]", f"{value!r} is not allowed; {allowed}"))
    return found


def problems_of_volume(field: str, volume: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with a volume: its name, and its source, of which it has one."""
    from openshift_ai_sdk.training._generated.mpijob import Volume

    if has_parameter(str(dict(volume))):
        return []
    found = problems_of_volume_name(field, volume["name"])
    known = {info.alias or name for name, info in Volume.model_fields.items()} - {"name"}
    sources = [str(key) for key in volume if key != "name"]
    for source in sources:
        if source not in known:
            # Those that are used most; there are thirty.
            common = "emptyDir, persistentVolumeClaim, configMap, secret, nfs, csi, ephemeral, projected"
            text = f"is not the source of a volume{nearest(source, known)}; use one such as {common}"
            found.append(Problem(f"{field}.{source}", text))
    if not sources:
        found.append(Problem(field, f"has no source; use { ({**volume, 'emptyDir': {}})!r}"))
    elif len(sources) > 1 and known.issuperset(sources):
        found.append(Problem(field, f"has {len(sources)} sources ({', '.join(sources)}); use one"))
    if not found:
        found += _schema.problems_of(Volume, dict(volume), field)
    return found


def problems_of_mount(field: str, mount: Mapping[str, Any]) -> list[Problem]:
    """Return what is wrong with the mount of a volume."""
    from openshift_ai_sdk.training._generated.mpijob import VolumeMount

    if has_parameter(str(dict(mount))):
        return []
    found = problems_of_volume_name(field, mount["name"])
    path = mount["mountPath"]
    if not isinstance(path, str) or not path.startswith("/") or ":" in path:
        text = f"{path!r} is not allowed; use a path that begins with '/' and has no ':', such as '/data'"
        found.append(Problem(f"{field}.mountPath", text))
    if not found:
        found += _schema.problems_of(VolumeMount, dict(mount), field)
    return found


def problems_of_volume_name(field: str, name: object) -> list[Problem]:
    """Return what is wrong with the name of a volume."""
    if isinstance(name, str) and VOLUME_NAME.fullmatch(name):
        return []
    return [Problem(f"{field}.name", f"{name!r} is not allowed; {VOLUME_NAME_RULE}")]


def problems_of_resources(
    label: str, sizes: ResourceRequirements | Mapping[str, int | float | str] | None
) -> list[Problem]:
    """Return the problems of a resource list."""
    found: list[Problem] = []
    if sizes is not None and not isinstance(sizes, ResourceRequirements | Mapping):
        text = f"{sizes!r} is not allowed; use ResourceRequirements(cpu=4), or a mapping such as {{'cpu': 4}}"
        return [Problem(label, text)]
    if isinstance(sizes, Mapping) and (wrong := [name for name in sizes if not isinstance(name, str)]):
        return [Problem(label, f"{name!r} is not the name of a resource; {RESOURCE_RULE}") for name in wrong]
    size = as_resources(sizes)
    if not isinstance(size.other, Mapping):
        text = f"{size.other!r} is not allowed; use a mapping, such as {{'rdma/hca': 1}}"
        return [Problem(f"{label}.other", text)]
    for name in size.other:
        if not isinstance(name, str) or not RESOURCE.fullmatch(name):
            found.append(Problem(label, f"{name!r} is not the name of a resource; {RESOURCE_RULE}"))
    known = {name: value for name, value in size.other.items() if isinstance(name, str) and RESOURCE.fullmatch(name)}
    for name, value in {"cpu": size.cpu, "memory": size.memory, **known}.items():
        if value is not None and (text := _quantity.problem_of(name, value)):
            found.append(Problem(f"{label}.{name}", text))
    if whole(size.gpu) is None or size.gpu < 0:
        found.append(Problem(f"{label}.gpu", f"{size.gpu!r} is not allowed; use 0 or more"))
    if not isinstance(size.gpu_resource, str) or not DEVICE.fullmatch(size.gpu_resource):
        text = f"{size.gpu_resource!r} is not the name of a device; use one such as 'nvidia.com/gpu'"
        found.append(Problem(f"{label}.gpu_resource", text))
    return found


def as_resources(sizes: ResourceRequirements | Mapping[str, int | float | str] | None) -> ResourceRequirements:
    """Return resources in either form as ResourceRequirements."""
    if sizes is None:
        return ResourceRequirements()
    return sizes if isinstance(sizes, ResourceRequirements) else ResourceRequirements.from_mapping(sizes)


def resource_lists(size: ResourceRequirements) -> Json:
    """Return requests and limits as a container has them."""
    requests: Json = {}
    limits: Json = {}
    if size.cpu is not None:
        requests["cpu"] = str(size.cpu)
    if size.memory is not None:
        requests["memory"] = limits["memory"] = str(size.memory)
    devices = {size.gpu_resource: size.gpu} if size.gpu else {}
    for name, count in {**devices, **size.other}.items():
        requests[name] = limits[name] = str(count)
    return {"requests": requests, "limits": limits}


def words_of(command: Command) -> list[str]:
    """Return a command as a list of words. Text that only a shell understands is given to one."""
    if not isinstance(command, str):
        return [str(word) for word in command]
    if re.search(r"[|&;<>()$`*?~\n]", command):
        return ["sh", "-c", command]
    return shlex.split(command)


def starts_ranks(command: Sequence[str]) -> bool:
    """Return whether a command starts ranks by itself, be it in a script of a shell."""
    parts = (part for word in command for part in re.split(r"[ \t\n;&|()]+", word))
    return any(PurePosixPath(part).name in LAUNCHERS for part in parts)


def launched(command: list[str], ranks: int, implementation: str | None, flags: Sequence[str] = ()) -> list[str]:
    """Return the command that starts the ranks: mpirun is put before it where it is needed.

    Each line of output is tagged with its rank, which get_logs removes again.
    """
    tag = "-prepend-rank" if (implementation or "").lower() in ("intel", "mpich") else "--tag-output"
    return command if starts_ranks(command) else ["mpirun", tag, *flags, "-n", str(ranks), *command]


def runtime_command(manifest: Json, runtime: Json) -> None:
    """Put mpirun before a TrainJob's command if its runtime is one of MPI."""
    policy = (runtime["spec"].get("mlPolicy") or {}).get("mpi")
    trainer = manifest["spec"]["trainer"]
    if policy is None:
        return
    slots = trainer.get("numProcPerNode")
    if slots is None:
        slots = policy.get("numProcPerNode") or 1
        slots = slots if slots != 1 else max(gpus_of(node_size(manifest, runtime)), 1)
    hosts = trainer["numNodes"]
    if policy.get("runLauncherAsNode"):
        # Trainer makes one worker at least, besides the launcher.
        hosts = max(hosts - 1, 1) + 1
    name = (runtime["metadata"].get("annotations") or {}).get("mpi.opendatahub.io/mpi-implementation")
    trainer["command"] = launched(trainer["command"], int(slots) * hosts, name)


def node_size(manifest: Json, runtime: Json) -> Json:
    """Return the resources of a TrainJob's node: those of the job, else of its runtime."""
    size: Json | None = manifest["spec"]["trainer"].get("resourcesPerNode")
    if size is not None:
        return size
    for job in runtime["spec"]["template"]["spec"].get("replicatedJobs") or []:
        labels = (job["template"].get("metadata") or {}).get("labels") or {}
        if labels.get("trainer.kubeflow.org/trainjob-ancestor-step") == "trainer":
            containers = job["template"]["spec"]["template"]["spec"]["containers"]
            return next((item.get("resources") or {} for item in containers if item["name"] == "node"), {})
    return {}


def gpus_of(size: Json) -> int:
    """Return how many GPUs resources ask for."""
    for part in ("limits", "requests"):
        for name, count in (size.get(part) or {}).items():
            if "gpu" in name.lower():
                return int(count)
    return 0


def restrict(manifest: Json) -> Json:
    """Return an MPIJob that a namespace for restricted pods takes."""
    manifest = deepcopy(manifest)
    for role in (manifest["spec"].get("mpiReplicaSpecs") or {}).values():
        for container in role["template"]["spec"]["containers"]:
            container.setdefault("securityContext", {}).setdefault("runAsNonRoot", True)
    return manifest


def without_empty(value: Any) -> Any:
    """Return JSON without nulls, empty objects and empty lists."""
    if isinstance(value, dict):
        kept = {key: without_empty(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None and item != {} and item != []}
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    return value
