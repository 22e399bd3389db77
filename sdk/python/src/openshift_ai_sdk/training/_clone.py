"""Creates changed copies of jobs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy

from openshift_ai_sdk.training import _changes, _ranks
from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._create import is_restricted, restrict
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._job_ref import JobRef
from openshift_ai_sdk.training._kinds import MPI_JOB
from openshift_ai_sdk.training._pods import OUTPUT_DIR
from openshift_ai_sdk.training._trainer_runtime import has_runtime_patches, settle_runtime
from openshift_ai_sdk.training._written import as_written, keep_placement, masked_in, written_in
from openshift_ai_sdk.training.errors import InvalidJobError, JobNotFoundError, Problem

NUMBERED = re.compile(r"(.*)-([1-9][0-9]{0,5})")


async def clone(
    cluster: Cluster, ref: JobRef, new_name: str | None, changes: Mapping[str, object], dry_run: str | None
) -> Json:
    """Create a changed copy of a job under a new name; with ``client`` for a dry run only build it."""
    found = await cluster.find_same(ref)
    written, missing = (found.object, "") if found.object else written_in(found.report)
    if written is None:
        raise JobNotFoundError(f"{ref} is deleted, and {missing}")
    manifest = as_written(written)
    if found.object:
        keep_placement(manifest, found.object, found.report)
    original = deepcopy(manifest)
    problems = _changes.problems_of(changes) or await apply(cluster, manifest, changes)
    if not problems and found.object is None:
        problems = list(masked_in(manifest))
    if problems:
        raise InvalidJobError(problems)
    if "runtime" in changes and not manifest["spec"]["runtimeRef"].get("kind"):
        await settle_runtime(cluster, manifest)
    if "command" not in changes and not _changes.FLAGS.isdisjoint(changes):
        # The number of ranks is in a command of which only flags differ.
        _changes.launcher_of(original).update(_changes.command_in(manifest))
    note = await _ranks.follow(cluster, original, manifest)
    if note:
        warnings.warn(note, stacklevel=2)
    if new_name is None:
        names = [other.ref.name for other in await cluster.list(ref.namespace, gone=True)]
        new_name = next_name(ref.name, names)
    manifest["metadata"]["name"] = new_name
    if not any(field.endswith("subPath") for field in changes):
        rename_output(manifest["spec"], ref.name, new_name)
    if "run_as_user" in changes and ref.kind == MPI_JOB.kind and await is_restricted(cluster, ref.namespace):
        manifest = restrict(manifest)
    if dry_run == "client":
        return manifest
    return await cluster.api.create(ref.resource, ref.namespace, manifest, dry_run == "server")


async def apply(cluster: Cluster, manifest: Json, changes: Mapping[str, object]) -> list[Problem]:
    """Make changes in a copy of a job, and return what is wrong with them."""
    if not _changes.needs_runtime(manifest, changes):
        return _changes.apply(manifest, changes)
    meant = deepcopy(manifest)
    if "runtime" in changes:
        _changes.set_runtime(meant, changes["runtime"])
    runtime = await settle_runtime(cluster, meant)
    return _changes.apply(manifest, changes, runtime, overrides=not await has_runtime_patches(cluster))


def rename_output(spec: Json, old: str, new: str) -> None:
    """Have the spec of a clone name its own folder for results: the mount at $OUTPUT_DIR with the original's name."""
    objects = list(objects_in(spec))
    folders = {str(each.get("value")).rstrip("/") for each in objects if each.get("name") == OUTPUT_DIR}
    for each in objects:
        if str(each.get("mountPath")).rstrip("/") in folders and each.get("subPath") == old:
            each["subPath"] = new


def objects_in(value: object) -> Iterator[Json]:
    """Yield all objects in a value of JSON, itself included."""
    if isinstance(value, dict):
        yield value
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects_in(each)


def next_name(name: str, taken: Iterable[str]) -> str:
    """Return a name with the number after the highest that a name of the same stem has.

    Example:
        >>> next_name("train", ["train", "train-2"])
        'train-3'
    """
    found = NUMBERED.fullmatch(name)
    stem = found[1] if found else name
    highest = 1
    for other in taken:
        parts = NUMBERED.fullmatch(other)
        if parts and parts[1] == stem:
            highest = max(highest, int(parts[2]))
    return f"{stem.rstrip('-') or name}-{highest + 1}"
