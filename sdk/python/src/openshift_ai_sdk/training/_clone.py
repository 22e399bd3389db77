"""Creates changed copies of jobs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy

from openshift_ai_sdk.training import _changes, _ranks
from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._job_ref import JobRef
from openshift_ai_sdk.training._pods import OUTPUT_DIR
from openshift_ai_sdk.training._trainer_runtime import settle_runtime
from openshift_ai_sdk.training._written import as_written, masked_in, written_in
from openshift_ai_sdk.training.errors import InvalidJobError, JobNotFoundError

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
    original = deepcopy(manifest)
    problems = _changes.apply(manifest, changes)
    if not problems and found.object is None:
        problems = list(masked_in(manifest))
    if problems:
        raise InvalidJobError(problems)
    if "runtime" in changes and not manifest["spec"]["runtimeRef"].get("kind"):
        await settle_runtime(cluster, manifest)
    note = await _ranks.follow(cluster, original, manifest)
    if note:
        warnings.warn(note, stacklevel=2)
    if new_name is None:
        names = [other.ref.name for other in await cluster.list(ref.namespace, gone=True)]
        new_name = next_name(ref.name, names)
    manifest["metadata"]["name"] = new_name
    if not any(field.endswith("subPath") for field in changes):
        rename_output(manifest["spec"], ref.name, new_name)
    if dry_run == "client":
        return manifest
    return await cluster.api.create(ref.resource, ref.namespace, manifest, dry_run == "server")


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
