"""Suggests what a job should ask for, by what the user's earlier jobs of the same program used.

The rules and the texts are those of the command line and the dashboard (internal/jobs/advice.go).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil
from posixpath import basename

from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._kinds import JOB_REPORT, Resource, is_train_job
from openshift_ai_sdk.training._logs import parse_time
from openshift_ai_sdk.training._quantity import MIB, number
from openshift_ai_sdk.training._resources import gpus_of
from openshift_ai_sdk.training.errors import JobRefusedError, NotSupportedError, PermissionDeniedError

SELF = Resource("authentication.k8s.io/v1", "SelfSubjectReview", "selfsubjectreviews")

FEWEST_SAMPLES = 3
# What a pod gets beyond the most that was used, in percent.
MEMORY_MARGIN = 20
GIB = 1024
# What starts ranks or a program, and is not what identifies it.
LAUNCHERS = {"mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "horovodrun", "deepspeed", "torchrun"}
STARTERS = LAUNCHERS | {"sh", "bash", "exec", "env", "set", "time"}
WORD = re.compile(r"""[^\s'";&|]+""")


@dataclass(frozen=True)
class Run:
    """What a job ran and used. Figures that were not measured are -1.

    They are those of the pod that used most: the maximum of the memory in MiB, the 95th percentile of the CPU in
    thousandths of a core, the mean of GPUs in thousandths, and the share of time, in thousandths, in which the CPU
    limit stopped it.
    """

    creator: str
    runtime: str
    repository: str
    program: str
    workers: int
    seconds: float
    memory: int
    cpu: int
    gpu: int
    throttled: int


@dataclass
class Figures:
    """The figures of the jobs of one program."""

    memory: list[int] = field(default_factory=list)
    cpu: list[int] = field(default_factory=list)
    gpu: list[int] = field(default_factory=list)
    throttled: int = 0
    seconds: dict[int, list[float]] = field(default_factory=dict)


async def advice(cluster: Cluster, manifest: Json, namespace: str) -> list[str]:
    """Return what earlier jobs suggest for a job, a sentence each; nothing if only the job's name is known."""
    if "spec" not in manifest:
        return []
    reports, _ = await cluster.api.list(JOB_REPORT, namespace)
    return advise(reports, manifest, await user_of(cluster))


async def user_of(cluster: Cluster) -> str:
    """Return the user's name; empty if the API server does not tell."""
    body = {"apiVersion": SELF.api_version, "kind": SELF.kind}
    try:
        review = await cluster.api.create(SELF, "", body)
    except (JobRefusedError, NotSupportedError, PermissionDeniedError):
        return ""
    return str((review.get("status") or {}).get("userInfo", {}).get("username", ""))


def advise(reports: Sequence[Json], manifest: Json, user: str) -> list[str]:
    """Return what the reports of a user's jobs suggest for a job; with an empty user, those of all users count."""
    image, runtime, command, workers, resources = summary_of(manifest)
    program = program_of(shlex.join(command))
    figures = Figures()
    for run in map(run_of, reports):
        if (
            run is not None
            and run.runtime == runtime
            and (not image or run.repository == repository_of(image))
            and run.program == program
            and user in ("", run.creator)
        ):
            _add(figures, run)
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    found = (
        _memory_advice(figures, int((number(asked.get("memory")) or 0) // MIB)),
        _cpu_advice(figures, ceil((number(asked.get("cpu")) or 0) * 1000 - 1e-6)),
        _gpu_advice(figures, gpus_of(resources)),
        _workers_advice(figures, workers),
    )
    return [text for text in found if text]


def summary_of(manifest: Json) -> tuple[str, str, list[str], int, Json]:
    """Return the image, runtime, command, number of workers and resources of each worker of a job."""
    spec = manifest["spec"]
    if is_train_job(manifest):
        trainer = spec.get("trainer") or {}
        command = [*(trainer.get("command") or []), *(trainer.get("args") or [])]
        runtime = str((spec.get("runtimeRef") or {}).get("name", ""))
        return (
            trainer.get("image") or "",
            runtime,
            command,
            trainer.get("numNodes") or 0,
            trainer.get("resourcesPerNode") or {},
        )
    roles = spec.get("mpiReplicaSpecs") or {}
    launcher, worker = _main_container(roles.get("Launcher")), _main_container(roles.get("Worker"))
    command = [*(launcher.get("command") or []), *(launcher.get("args") or [])]
    workers = (roles.get("Worker") or {}).get("replicas", 1) if "Worker" in roles else 0
    image = worker.get("image") or launcher.get("image") or ""
    return image, "", command, workers, worker.get("resources") or {}


def _main_container(role: Json | None) -> Json:
    template = (role or {}).get("template") or {}
    containers: list[Json] = (template.get("spec") or {}).get("containers") or [{}]
    return containers[0]


def run_of(report: Json) -> Run | None:
    """Return what a job ran and used by its report; None if it did not succeed."""
    status = report.get("status") or {}
    run = status.get("run")
    if run is None or status.get("phase") != "Succeeded":
        return None
    pods = (status.get("usage") or {}).get("perPod") or []

    def most(metric: str, figure: str) -> int:
        values = [each[figure] for pod in pods for each in pod.get("metrics") or [] if each["metric"] == metric]
        return max(values, default=-1)

    running, ended = (parse_time(status.get(name) or "") for name in ("runningTime", "completionTime"))
    return Run(
        creator=run.get("creator", ""),
        runtime=run.get("runtime", ""),
        repository=repository_of(run.get("image", "")),
        program=program_of(run.get("command", "")),
        workers=(status.get("workers") or {}).get("wanted", 0),
        seconds=(ended - running).total_seconds() if running and ended else -1,
        memory=most("Memory", "max"),
        cpu=most("CPU", "p95"),
        gpu=most("GPU", "mean"),
        throttled=most("Throttled", "mean"),
    )


def _add(figures: Figures, run: Run) -> None:
    if run.seconds >= 0:
        figures.seconds.setdefault(run.workers, []).append(run.seconds)
    for value, values in ((run.memory, figures.memory), (run.cpu, figures.cpu), (run.gpu, figures.gpu)):
        if value >= 0:
            values.append(value)
    figures.throttled += run.throttled >= 50


def _memory_advice(figures: Figures, asked: int) -> str:
    if len(figures.memory) < FEWEST_SAMPLES:
        return ""
    used = max(figures.memory)
    step = GIB if used >= 4 * GIB else 256
    enough = max(1, (used * (100 + MEMORY_MARGIN) // 100 + step - 1) // step) * step
    said = f"Memory: {len(figures.memory)} earlier jobs like this one used at most {mebibytes_text(used)} in a pod"
    size = f"{enough // GIB}Gi" if enough % GIB == 0 else f"{enough}Mi"
    if asked < used:
        return f"{said}; this one asks for {mebibytes_text(asked) if asked else 'none'}. Ask for {size}."
    if asked >= 2 * enough and asked - enough >= GIB:
        return f"{said}; this one asks for {mebibytes_text(asked)}. {size} is enough."
    return ""


def _cpu_advice(figures: Figures, asked: int) -> str:
    count = len(figures.cpu)
    if count < FEWEST_SAMPLES:
        return ""
    if 2 * figures.throttled > count:
        return (
            f"CPU: the limit slowed down {figures.throttled} of {count} earlier jobs like this one. "
            "Ask for more CPU, or for fewer slots per worker."
        )
    used = max(figures.cpu)
    enough = max(1, (used + 499) // 500) * 500
    if asked < 2 * enough or asked - enough < 1000:
        return ""
    size = str(enough // 1000) if enough % 1000 == 0 else f"{enough}m"
    return (
        f"CPU: {count} earlier jobs like this one used at most {thousandths_text(used, 'core')} in a pod "
        f"(95th percentile); this one asks for {thousandths_text(asked, 'core')}. {size} is enough."
    )


def _gpu_advice(figures: Figures, asked: int) -> str:
    if len(figures.gpu) < FEWEST_SAMPLES or asked == 0 or max(figures.gpu) >= 100 * asked:
        return ""
    return (
        f"GPU: {len(figures.gpu)} earlier jobs like this one used at most {thousandths_text(max(figures.gpu), 'GPU')} "
        f"in a pod on average; this one asks for {asked}. Check that the program uses them."
    )


def _workers_advice(figures: Figures, asked: int) -> str:
    mine = figures.seconds.get(asked, [])
    if len(mine) < FEWEST_SAMPLES:
        return ""
    usual = median(mine)
    # The fewest workers with which jobs took at most a tenth longer.
    fewer = [
        workers
        for workers, times in figures.seconds.items()
        if 0 < workers < asked and len(times) >= FEWEST_SAMPLES and median(times) * 10 <= usual * 11
    ]
    if not fewer:
        return ""
    best = min(fewer)
    return (
        f"Workers: earlier jobs took {duration_text(median(figures.seconds[best]))} with {best} "
        f"worker{'' if best == 1 else 's'} and {duration_text(usual)} with {asked} (medians of "
        f"{len(figures.seconds[best])} and {len(mine)} jobs). Fewer workers are enough, unless the data has grown."
    )


def median(times: Sequence[float]) -> float:
    """Return the middle one of some times; of an even number the later of two."""
    return sorted(times)[len(times) // 2]


def repository_of(image: str) -> str:
    """Return an image without its tag and digest.

    Example:
        >>> repository_of("localhost:5000/train:v1")
        'localhost:5000/train'
    """
    image = image.partition("@")[0]
    colon = image.rfind(":")
    return image[:colon] if colon > image.rfind("/") else image


def program_of(command: str) -> str:
    """Return what identifies the program of a command: its first two words that are no options, numbers or starters.

    Example:
        >>> program_of("mpirun -np 4 python train.py --epochs 3")
        'python train.py'
    """
    words: list[str] = []
    for word in WORD.findall(command):
        name = basename(word.rstrip("/")) or "/"
        if word[0] == "-" or "=" in word or not any(map(str.isalpha, word)) or name in STARTERS:
            continue
        words.append(name)
        if len(words) == 2:
            break
    return " ".join(words)


def mebibytes_text(value: int) -> str:
    """Return an amount of memory in its largest unit."""
    amount, units = float(value), ["MiB", "GiB", "TiB"]
    while len(units) > 1 and amount >= 1024:
        amount /= 1024
        units.pop(0)
    return f"{amount:.1f}".removesuffix(".0") + f" {units[0]}"


def thousandths_text(value: int, thing: str) -> str:
    """Return a number of things that are counted in thousandths."""
    text = f"{value / 1000:.{2 if value < 1000 else 1}f}".rstrip("0").removesuffix(".") or "0"
    return f"{text} {thing}{'' if text == '1' else 's'}"


def duration_text(seconds: float) -> str:
    """Return a duration as kubectl prints it.

    Example:
        >>> duration_text(1234)
        '20m'
    """
    whole = int(seconds)
    minutes, hours = whole // 60, whole // 3600

    def two(large: int, unit: str, small: int, part: str) -> str:
        return f"{large}{unit}{small}{part}" if small else f"{large}{unit}"

    if whole < 120:
        return f"{whole}s"
    if minutes < 10:
        return two(minutes, "m", whole % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    return two(hours // 24, "d", hours % 24, "h") if hours < 192 else f"{hours // 24}d"
