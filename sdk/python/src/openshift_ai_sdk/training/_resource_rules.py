"""Which amounts of CPUs, memory and devices are allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from openshift_ai_sdk.training import _quantity
from openshift_ai_sdk.training._value_rules import whole
from openshift_ai_sdk.training.errors import Problem

RESOURCE = re.compile(r"ephemeral-storage|hugepages-.+|[^/]+/[^/]+")
DEVICE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?", re.ASCII)
# The GPU resource of jobs that name no other.
NVIDIA_GPU = "nvidia.com/gpu"
RESOURCE_RULE = "use cpu, memory, gpu, ephemeral-storage, or a name with a domain, such as 'nvidia.com/gpu'"


def fields_of(resources: Mapping[str, int | float | str]) -> dict[str, Any]:
    """Return the fields of ResourceRequirements for resources as Kubernetes writes them."""
    rest = dict(resources)
    cpu, memory = rest.pop("cpu", None), rest.pop("memory", None)
    gpu_resource = next((name for name in rest if name == "gpu" or name.endswith("/gpu")), None)
    gpu = rest.pop(gpu_resource) if gpu_resource else 0
    return {
        "cpu": cpu,
        "memory": memory,
        "gpu": int(gpu) if str(gpu).isdigit() else gpu,
        "gpu_resource": gpu_resource if gpu_resource and "/" in gpu_resource else NVIDIA_GPU,
        "other": rest,
    }


def problems_of_fields(label: str, fields: Mapping[str, Any]) -> list[Problem]:
    """Return the problems of the fields of ResourceRequirements; the label is empty for these themselves."""
    found: list[Problem] = []
    prefix = f"{label}." if label else ""
    other, gpu, gpu_resource = fields["other"], fields["gpu"], fields["gpu_resource"]
    if not isinstance(other, Mapping):
        text = f"{other!r} is not allowed; use a mapping, such as {{'rdma/hca': 1}}"
        found.append(Problem(f"{prefix}other", text))
        other = {}
    for name in other:
        if not isinstance(name, str) or not RESOURCE.fullmatch(name):
            found.append(Problem(label or "other", f"{name!r} is not the name of a resource; {RESOURCE_RULE}"))
    known = {name: value for name, value in other.items() if isinstance(name, str) and RESOURCE.fullmatch(name)}
    for name, value in {"cpu": fields["cpu"], "memory": fields["memory"], **known}.items():
        if value is not None and (problem := _quantity.problem_of(name, value)):
            found.append(Problem(f"{prefix}{name}", problem))
    if whole(gpu) is None or gpu < 0:
        found.append(Problem(f"{prefix}gpu", f"{gpu!r} is not allowed; use a whole number, 0 or more"))
    if not isinstance(gpu_resource, str) or not DEVICE.fullmatch(gpu_resource):
        text = f"{gpu_resource!r} is not the name of a device; use one such as 'nvidia.com/gpu'"
        found.append(Problem(f"{prefix}gpu_resource", text))
    return found
