"""What a job sets in all of its pods: tolerations, shared memory and a folder for results."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from openshift_ai_sdk.training import _quantity, _schema
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._value_rules import (
    LABEL_VALUE,
    OBJECT_NAME_RULE,
    QUALIFIED_NAME,
    has_parameter,
    is_object_name,
)
from openshift_ai_sdk.training.errors import Problem

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TAINT = re.compile(r"(?P<key>[^=:]+)(?:=(?P<value>[^:]*))?(?::(?P<effect>.+))?")
PREFER = "prefer:"
# The variable with the path for results.
OUTPUT_DIR = "OUTPUT_DIR"


def toleration_of(taint: str | Mapping[str, Any]) -> Json:
    """Return a toleration as Kubernetes writes it; text is a taint: ``KEY[=VALUE][:EFFECT]``."""
    if not isinstance(taint, str):
        return dict(taint)
    found = TAINT.fullmatch(taint)
    parts = found.groupdict() if found else {"key": taint}
    operator = "Exists" if parts.get("value") is None else "Equal"
    return {key: value for key, value in {**parts, "operator": operator}.items() if value is not None}


def problems_of_tolerations(taints: object) -> list[Problem]:
    """Return what is wrong with tolerations."""
    from openshift_ai_sdk.training._generated.mpijob import Toleration

    if isinstance(taints, str | Mapping) or not isinstance(taints, Sequence):
        return [Problem("tolerations", f"{taints!r} is not allowed; use a list, such as ['nvidia.com/gpu']")]
    found = []
    for index, taint in enumerate(taints):
        field = f"tolerations[{index}]"
        if isinstance(taint, Mapping):
            found += _schema.problems_of(Toleration, dict(taint), field)
        elif not isinstance(taint, str) or not (is_taint(taint) or has_parameter(taint)):
            text = f"{taint!r} is not allowed; use KEY[=VALUE][:EFFECT] with effect {', '.join(EFFECTS)}"
            found.append(Problem(field, text))
    return found


def is_taint(text: str) -> bool:
    """Return whether a text is a taint as ``kubectl taint`` takes it."""
    found = TAINT.fullmatch(text)
    return (
        found is not None
        and QUALIFIED_NAME.fullmatch(found["key"]) is not None
        and LABEL_VALUE.fullmatch(found["value"] or "") is not None
        and found["effect"] in (None, *EFFECTS)
    )


def problems_of_names(label: str, names: object, of: str) -> list[Problem]:
    """Return what is wrong with a list of names of objects."""
    if isinstance(names, str) or not isinstance(names, Sequence):
        return [Problem(label, f"{names!r} is not allowed; use a list, such as ['my-{of.split()[-1]}']")]
    return [
        Problem(f"{label}[{index}]", f"{name!r} is not the name of a {of}; {OBJECT_NAME_RULE}")
        for index, name in enumerate(names)
        if not is_object_name(name)
    ]


def problems_of_folder(label: str, path: object) -> list[Problem]:
    """Return what is wrong with an absolute path; None is none."""
    if path is None or (isinstance(path, str) and (path.startswith("/") or has_parameter(path))):
        return []
    return [Problem(label, f"{path!r} is not allowed; use an absolute path, such as '/app'")]


def problems_of_topology(key: object) -> list[Problem]:
    """Return what is wrong with the key of a node label."""
    if key is None or (isinstance(key, str) and QUALIFIED_NAME.fullmatch(key.removeprefix(PREFER))):
        return []
    example = "such as 'topology.kubernetes.io/zone', with 'prefer:' before it if possible is enough"
    return [Problem("topology", f"{key!r} is not the key of a node label; use one {example}")]


def problems_of_output(output: object) -> list[Problem]:
    """Return what is wrong with the claim for results."""
    if output is None or (isinstance(output, str) and has_parameter(output)):
        return []
    claim, _, path = output.partition(":") if isinstance(output, str) else ("", "", "")
    if is_object_name(claim) and re.fullmatch(r"/[^:]*[^:/][^:]*", path):
        return []
    text = f"{output!r} is not allowed; use a claim and an absolute path, such as 'results:/results'"
    return [Problem("output_dir", text)]


def problems_of_shm(size: object) -> list[Problem]:
    """Return what is wrong with the size of shared memory."""
    text = None if size is None else _quantity.problem_of("memory", size)
    return [Problem("shm", text)] if text else []


def added_volumes(
    shm: str | int | None, output_dir: str | None, job: str, taken: Sequence[str]
) -> list[tuple[Json, Json]]:
    """Return the volumes for shared memory and results with their mounts.

    Args:
        shm: The size of shared memory.
        output_dir: The claim for results and its path, such as ``results:/results``.
        job: The name of the job, which is that of its folder.
        taken: The names of other volumes.
    """
    wanted: list[tuple[Json, Json]] = []
    if shm is not None:
        wanted.append(({"emptyDir": {"medium": "Memory", "sizeLimit": str(shm)}}, {"mountPath": "/dev/shm"}))
    if output_dir is not None:
        claim, _, path = output_dir.partition(":")
        wanted.append(({"persistentVolumeClaim": {"claimName": claim}}, {"mountPath": path, "subPath": job}))
    found: list[tuple[Json, Json]] = []
    number = len(taken)
    for volume, mount in wanted:
        while f"volume-{number}" in taken:
            number += 1
        name = {"name": f"volume-{number}"}
        number += 1
        found.append(({**name, **volume}, {**name, **mount}))
    return found


def with_unique_mounts(volumes: Sequence[Json], mounts: Sequence[Json]) -> tuple[list[Json], list[Json]]:
    """Return volumes of which each is mounted once: the mounts in a patch of a runtime have different names."""
    all_volumes, all_mounts = list(volumes), []
    seen: set[str] = set()
    for mount in mounts:
        name = original = str(mount["name"])
        while name in seen:
            name = f"{original[:50]}-{len(all_volumes)}"
            volume = next(each for each in volumes if each["name"] == original)
            all_volumes.append({**volume, "name": name})
        seen.add(name)
        all_mounts.append({**mount, "name": name})
    return all_volumes, all_mounts
