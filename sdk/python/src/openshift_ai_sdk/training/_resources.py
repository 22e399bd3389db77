"""The CPUs, memory and GPUs that pods request."""

from __future__ import annotations

import re
from collections.abc import Mapping

from openshift_ai_sdk.training import _quantity
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._value_rules import whole
from openshift_ai_sdk.training.errors import Problem
from openshift_ai_sdk.training.models import ResourceRequirements

RESOURCE = re.compile(r"ephemeral-storage|hugepages-.+|[^/]+/[^/]+")
DEVICE = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?", re.ASCII)
# The GPU resource of jobs that name no other.
NVIDIA_GPU = "nvidia.com/gpu"
# What the names of resources have that measure a share of a GPU, or only give access to monitor it.
PARTS_OF_GPUS = ("mem", "core", "tiles", "percent", "ratio", "monitoring")
# Resources whose requests and limits may differ.
OVERCOMMITTED = ("cpu", "memory", "ephemeral-storage")
RESOURCE_RULE = "use cpu, memory, gpu, ephemeral-storage, or a name with a domain, such as 'nvidia.com/gpu'"


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


def gpus_of(size: Json) -> int:
    """Return how many GPUs resources ask for."""
    for part in ("limits", "requests"):
        for name, count in (size.get(part) or {}).items():
            if "gpu" in name.lower():
                return int(count)
    return 0


def is_gpu(resource: str) -> bool:
    """Return whether a resource counts GPUs, MIG slices or similar accelerators, by the rule of the command line.

    Example:
        >>> [is_gpu(name) for name in ("amd.com/gpu", "nvidia.com/mig-1g.5gb", "nvidia.com/gpumem", "cpu")]
        [True, True, False, False]
    """
    lower = resource.lower()
    device = lower.partition("/")[2]
    if any(part in device for part in PARTS_OF_GPUS) and not device.startswith("mig-"):
        return False
    return "gpu" in lower or lower.startswith("nvidia.com/mig-") or lower == "habana.ai/gaudi"


def request_limits(size: Json) -> None:
    """Set the requests that are missing to the limits, as Kubernetes does in pods.

    Kubeflow Trainer since v2.3 keeps the requests of a runtime if a TrainJob only sets limits.
    """
    for resource in OVERCOMMITTED:
        if resource in (size.get("limits") or {}) and resource not in (size.get("requests") or {}):
            size["requests"] = {**(size.get("requests") or {}), resource: size["limits"][resource]}


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
