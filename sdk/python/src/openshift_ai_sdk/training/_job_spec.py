"""The options of a job, and everything that is wrong with them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from openshift_ai_sdk.training._command import (
    Command,
    LaunchOptions,
    flags_of,
    has_launcher,
    is_command,
    problems_of_flags,
    words_of,
)
from openshift_ai_sdk.training._duration import Duration, is_duration
from openshift_ai_sdk.training._kinds import MPI_JOB, TRAIN_JOB
from openshift_ai_sdk.training._pods import (
    problems_of_folder,
    problems_of_names,
    problems_of_output,
    problems_of_shm,
    problems_of_tolerations,
    problems_of_topology,
)
from openshift_ai_sdk.training._resources import as_resources, problems_of_resources
from openshift_ai_sdk.training._value_rules import (
    DNS_LABEL,
    NAMESPACE,
    OBJECT_NAME_RULE,
    QUALIFIED,
    QUALIFIED_NAME,
    is_object_name,
    problem_of_image,
    problems_of_env,
    problems_of_labels,
    problems_of_mount,
    problems_of_texts,
    problems_of_volume,
    whole,
)
from openshift_ai_sdk.training.errors import Problem
from openshift_ai_sdk.training.models import ResourceRequirements

IMPLEMENTATIONS = ("OpenMPI", "Intel", "MPICH")
# How many bytes the annotations of an object may have.
ANNOTATIONS = 256 << 10
# Options of TrainJobs that only MPI runtimes apply, and those that only MPI runtimes of the operator apply.
WITH_MPI = ("mpi_flags", "workdir")
WITH_OURS = ("connections", "topology", "rdma", "profile", "wait_for_quota", "gang_timeout", "retries")
# The same, unless the job is in a queue.
WITHOUT_QUEUE = ("priority",)
# Options that a TrainJob has no field for.
NOT_IN_TRAIN_JOBS = {
    "mpi_implementation": "cannot be combined with runtime; the runtime determines the MPI",
    "launcher_resources": "cannot be combined with runtime; a TrainJob has no field for the size of its launcher, "
    "which is that of a worker if the runtime runs ranks there; set it with kubectl in a copy of the runtime",
}
# The largest number in a field of 32 bits.
LARGEST = 2**31 - 1
# The longest time in such a field, in seconds.
LONGEST_TIMEOUT = LARGEST
# The operator's bound for the shortest names. A ConfigMap of up to 1 MiB lists each host twice, with 64 bytes for the
# cluster's domain and 24 bytes around the names: 1048576 / (2 * (len("a-worker-5404.a.n.svc") + 64) + 24).
MOST_WORKERS = 5405


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
    shm: str | int | None = None
    output_dir: str | None = None
    tolerations: Sequence[str | Mapping[str, Any]] = ()
    topology: str | None = None
    image_pull_secrets: Sequence[str] = ()
    service_account: str | None = None
    workdir: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    run_as_user: int | None = None
    retries: int | None = None
    deadline: Duration | None = None
    ttl: Duration | None = None
    rdma: str | None = None
    profile: bool = False
    wait_for_quota: bool = False
    gang_timeout: Duration | None = None
    grace_period: Duration | None = None
    suspend: bool = False
    mlflow_tracking_uri: str | None = None

    @property
    def kind(self) -> str:
        """TrainJob where a runtime is named, else MPIJob."""
        return TRAIN_JOB.kind if self.runtime else MPI_JOB.kind

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
        found += [*self._of_mappings(), *self._of_volumes(), *self._of_pods(), *self._of_names()]
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
        for label, value, least, most in (
            ("workers", self.workers, 1, MOST_WORKERS),
            ("slots_per_worker", self.slots_per_worker, 1, LARGEST),
            ("run_as_user", self.run_as_user, 1, LARGEST),
            ("retries", self.retries, 0, LARGEST),
        ):
            if value is None and label != "workers":
                continue
            number = whole(value)
            if number is None or number < least:
                kind = "a whole number, " if number is None else ""
                found.append(Problem(label, f"{value!r} is not allowed; use {kind}{least} or more"))
            elif number > most:
                found.append(Problem(label, f"{value!r} is not allowed; use {least} to {most}"))
        if self.rdma is not None and self.rdma not in ("required", "optional"):
            found.append(Problem("rdma", f"{self.rdma!r} is not allowed; use 'required' or 'optional'"))
        switches = (("profile", self.profile), ("wait_for_quota", self.wait_for_quota), ("suspend", self.suspend))
        for label, switch in switches:
            if not isinstance(switch, bool):
                found.append(Problem(label, f"{switch!r} is not allowed; use True or False"))
        for label, duration, least, longest, example in (
            ("deadline", self.deadline, 1, math.inf, "'4h' or 3600"),
            ("ttl", self.ttl, 0, LONGEST_TIMEOUT, "'24h' or 86400"),
            ("gang_timeout", self.gang_timeout, 1, LONGEST_TIMEOUT, "'10m' or 600"),
            ("grace_period", self.grace_period, 0, math.inf, "'2m' or 120"),
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
        if self.mpi_implementation is not None and self.implementation() is None:
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

    def _of_pods(self) -> list[Problem]:
        found = [
            *problems_of_shm(self.shm),
            *problems_of_output(self.output_dir),
            *problems_of_tolerations(self.tolerations),
            *problems_of_topology(self.topology),
            *problems_of_names("image_pull_secrets", self.image_pull_secrets, "secret"),
            *problems_of_folder("workdir", self.workdir),
        ]
        if not isinstance(self.volume_mounts, Sequence):
            return found
        used = [str(mount.get("mountPath")) for mount in self.volume_mounts if isinstance(mount, Mapping)]
        output = self.output_dir.partition(":")[2] if isinstance(self.output_dir, str) else None
        for label, path in (("shm", "/dev/shm" if self.shm else None), ("output_dir", output)):
            if path and path.rstrip("/") in [other.rstrip("/") for other in used if other]:
                found.append(Problem(label, f"{path} is the path of two volumes"))
            used.append(path or "")
        return found

    def _of_names(self) -> list[Problem]:
        """Return what is wrong with the names of other objects."""
        found = []
        for label, value, of in (
            ("runtime", self.runtime, "a runtime"),
            ("queue", self.queue, "a LocalQueue"),
            ("priority", self.priority, "a PriorityClass"),
            ("service_account", self.service_account, "a ServiceAccount"),
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
        found = [Problem(label, text) for label, text in NOT_IN_TRAIN_JOBS.items() if getattr(self, label)]
        if self.workdir and has_launcher(self.command):
            text = "cannot be combined with runtime and a command that starts ranks itself; write it in the command: "
            found.append(Problem("workdir", f"{text}'mpirun --wdir {self.workdir} python train.py'"))
        return found

    def launch_options(self) -> LaunchOptions | None:
        """Return what a TrainJob's runtime decides about once it is known; None for an MPIJob."""
        if not self.runtime:
            return None
        names = (*WITH_MPI, *WITH_OURS, *(() if self.queue else WITHOUT_QUEUE))
        options = tuple(name for name in names if is_given(getattr(self, name)))
        return LaunchOptions(tuple(flags_of(self.mpi_flags)), self.workdir, options)

    def implementation(self) -> str | None:
        wanted = str(self.mpi_implementation).lower()
        return next((known for known in IMPLEMENTATIONS if known.lower() == wanted), None)

    def sizes(self) -> ResourceRequirements:
        return as_resources(self.resources)

    @property
    def slots(self) -> int:
        """Ranks that a worker takes: as many as it has GPUs, or one, unless slots_per_worker says otherwise."""
        return self.slots_per_worker or self.sizes().gpu or 1


def is_given(value: object) -> bool:
    """Return whether an option is set; 0 is a value."""
    return value is not None and value is not False and value not in ("", (), [])
