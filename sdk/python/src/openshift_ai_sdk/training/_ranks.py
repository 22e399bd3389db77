"""The number of ranks in the command of a changed copy of a job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from openshift_ai_sdk.training._changes import main_containers
from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._command import LAUNCHERS, RANK_FLAGS, starts_ranks
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._kinds import is_train_job
from openshift_ai_sdk.training._trainer_runtime import ranks_of, runtime_of
from openshift_ai_sdk.training.errors import TrainingError

# Flags of mpirun without a value, and with two.
SWITCHES = {
    f"{dashes}{name}"
    for name in ("tag-output", "prepend-rank", "oversubscribe", "allow-run-as-root", "report-bindings", "display-map")
    for dashes in ("-", "--")
} | {"-l", "-v", "-verbose", "--verbose"}
PAIRS = {"--mca", "-mca", "-genv", "-env"}
IN_SCRIPT = re.compile(rf"(?:{'|'.join(sorted(LAUNCHERS))})\s[^;&|\n]*?\s?--?np?[ =](\d+)\s")
# The fields of a TrainJob that its number of slots follows from, besides its runtime.
SIZE = ("numNodes", "numProcPerNode", "resourcesPerNode")


async def follow(cluster: Cluster, before: Json, after: Json) -> str:
    """Change the number of ranks in the command of a copy as the number of its slots has changed.

    Only a command that starts as many ranks as the original has slots is changed, and none that differs from the
    original's.

    Returns:
        A note about a number that is kept, or an empty text.
    """
    words = command_of(after)
    if words != command_of(before) or sized_alike(before, after):
        return ""
    kept, at = started_ranks(words)
    if not kept:
        return ""
    still = f"the command still starts {kept} rank{'' if kept == 1 else 's'}"
    try:
        was, now = await slots_of(cluster, before), await slots_of(cluster, after)
    except TrainingError as error:
        return f"{still}, because the number of slots is unknown: {error}"
    if was == now:
        return ""
    if at is None or kept != was:
        slots = f"{now} slot{'' if now == 1 else 's'}"
        return f"{still}, and the job now has {slots} instead of {was}; change the command to use them all"
    set_word(after, at, str(now))
    return ""


def holder_of(manifest: Json) -> Json:
    """Return the part of a job that has the launcher's command."""
    if is_train_job(manifest):
        trainer: Json = manifest["spec"].get("trainer") or {}
        return trainer
    return next(iter(main_containers(manifest, ["Launcher"])), {})


def command_of(manifest: Json) -> list[str]:
    """Return the launcher's command with its arguments."""
    holder = holder_of(manifest)
    return [str(word) for word in [*(holder.get("command") or []), *(holder.get("args") or [])]]


def set_word(manifest: Json, at: int, word: str) -> None:
    """Change a word of the launcher's command or arguments."""
    holder = holder_of(manifest)
    command = holder.get("command") or []
    if at < len(command):
        command[at] = word
    else:
        holder["args"][at - len(command)] = word


def sized_alike(before: Json, after: Json) -> bool:
    """Return whether two TrainJobs have the same size as far as they say it themselves."""
    if not is_train_job(before):
        return False
    was, now = (job["spec"].get("trainer") or {} for job in (before, after))
    same = before["spec"]["runtimeRef"] == after["spec"]["runtimeRef"]
    return same and all(was.get(name) == now.get(name) for name in SIZE)


async def slots_of(cluster: Cluster, manifest: Json) -> int:
    """Return the number of slots of all hosts of a job."""
    if not is_train_job(manifest):
        spec = manifest["spec"]
        worker = spec["mpiReplicaSpecs"].get("Worker")
        hosts = 0 if worker is None else int(worker.get("replicas", 1))
        return int(spec.get("slotsPerWorker") or 1) * (hosts + bool(spec.get("runLauncherAsWorker")))
    runtime = await runtime_of(cluster, manifest)
    if runtime is None:
        raise TrainingError(f"the runtime {manifest['spec']['runtimeRef']['name']} does not exist")
    return ranks_of(manifest, runtime)


def started_ranks(words: Sequence[str]) -> tuple[int, int | None]:
    """Return the number of ranks that a command starts, and its place in a command of one program.

    Returns:
        0 as the number if it is unknown.

    Example:
        >>> started_ranks(["mpirun", "-n", "1", "a", ":", "-n", "3", "b"])
        (4, None)
    """
    at = rank_count(words)
    if at is None:
        return int(ranks_in_script(words) or 0), None
    ranks, rest = int(words[at]), list(words)
    while ":" in rest:
        rest = [words[0], *rest[rest.index(":") + 1 :]]
        of = rank_count(rest)
        if of is None:
            return 0, None
        ranks, at = ranks + int(rest[of]), None
    return ranks, at


def rank_count(words: Sequence[str]) -> int | None:
    """Return the place of the number of ranks in a command of MPI's launcher; None if it has none, or is a script.

    Example:
        >>> rank_count(["mpirun", "--tag-output", "-n", "4", "train", "-n", "3"])
        3
    """
    if not words or PurePosixPath(words[0]).name not in LAUNCHERS:
        return None
    at = 1
    while at + 1 < len(words):
        word, value = words[at], words[at + 1]
        if word in RANK_FLAGS:
            return at + 1 if value.isdecimal() else None
        if not word.startswith("-"):
            return None  # the program
        at += 1 if word in SWITCHES or "=" in word or value.startswith("-") else 3 if word in PAIRS else 2
    return None


def ranks_in_script(words: Sequence[str]) -> str:
    """Return the number of ranks that the script of a shell starts; empty for none."""
    if len(words) < 3 or not starts_ranks(words):
        return ""
    found = (IN_SCRIPT.search(word) for word in words[1:])
    return next((match[1] for match in found if match), "")
