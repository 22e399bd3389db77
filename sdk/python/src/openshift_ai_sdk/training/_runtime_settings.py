"""The settings of runtimes, with the rules that ``kubectl odh mpijob runtimes create`` and the dashboard have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from enum import Enum
from typing import Any

from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._duration import Duration, parse_duration
from openshift_ai_sdk.training._runtimes import ALLOW_EGRESS, GROUP, NODE_LABELS, Runtime
from openshift_ai_sdk.training._value_rules import (
    OBJECT_NAME_RULE,
    has_parameter,
    is_object_name,
    problem_of_image,
    problems_of_labels,
    whole,
)
from openshift_ai_sdk.training.errors import InvalidJobError, Problem

# The init container, and the volume, that bring the agent into pods.
AGENT = "mpi-agent"
# The annotations of limits, by the arguments that set them.
ANNOTATIONS = {
    "max_workers": f"{GROUP}max-workers",
    "min_workers": f"{GROUP}min-workers",
    "max_gpus": f"{GROUP}max-gpus-per-worker",
    "gang_timeout": f"{GROUP}schedule-timeout-seconds",
}
# Numbers of 32 bits, as the fields and the operator have them.
LARGEST = 2**31 - 1


class Keep(Enum):
    """The default of settings that stay as they are: None is a value of these."""

    KEEP = "keep"


KEEP = Keep.KEEP


@dataclass(frozen=True)
class RuntimeSettings:
    """Settings of a runtime to change.

    KEEP leaves a setting as it is, and None removes it; an image, the slots and the user cannot be removed, so that
    None leaves them.
    """

    image: str | None = None
    slots: int | None = None
    max_workers: int | Keep | None = KEEP
    min_workers: int | Keep | None = KEEP
    max_gpus: int | Keep | None = KEEP
    gang_timeout: Duration | Keep | None = KEEP
    priority_class: str | Keep | None = KEEP
    required_node_labels: Mapping[str, str] | Keep | None = KEEP
    allow_egress: str | Keep | None = KEEP
    agent_image: str | None = None
    run_as_user: int | None = None

    def problems(self) -> list[Problem]:
        """Return what is wrong with the settings, whatever the runtime."""
        found = [*problems_of_image("image", self.image), *problems_of_number("slots", self.slots, 1)]
        for field, least, none in (
            ("max_workers", 1, ", or None for no limit"),
            ("min_workers", 1, ", or None for no minimum"),
            ("max_gpus", 0, ", or None for no limit"),
        ):
            found += problems_of_number(field, getattr(self, field), least, none)
        found += self._problems_of_range(None, None)
        found += problems_of_seconds(self.gang_timeout)
        name = self.priority_class
        if name is not None and name is not KEEP and (not is_object_name(name) or has_parameter(str(name))):
            found.append(Problem("priority_class", f"{name!r} is not the name of a PriorityClass; {OBJECT_NAME_RULE}"))
        found += problems_of_node_labels(self.required_node_labels)
        found += problems_of_destinations(self.allow_egress)
        found += problems_of_image("agent_image", self.agent_image)
        root = ": runtimes do not run as root"
        return found + problems_of_number("run_as_user", self.run_as_user, 1, root, largest=2**63 - 1)

    def problems_of_nothing(self) -> list[Problem]:
        """Return the problem of a change without any setting."""
        if self != RuntimeSettings():
            return []
        return [
            Problem("", f"nothing is changed; use one or more of {', '.join(RuntimeSettings.__dataclass_fields__)}")
        ]

    def problems_with(self, runtime: Runtime) -> list[Problem]:
        """Return what is wrong with the settings, which were checked, for a runtime."""
        if runtime.implementation is None:
            return [Problem("", f"{runtime.name} is not an MPI runtime; copy and change it with kubectl")]
        return self._problems_of_range(runtime.min_workers, runtime.max_workers)

    def _problems_of_range(self, least: str | None, most: str | None) -> list[Problem]:
        """Return what is wrong with a minimum above the maximum; what is not given is that of the runtime."""
        low = number_in(least) if self.min_workers is KEEP else whole(self.min_workers)
        high = number_in(most) if self.max_workers is KEEP else whole(self.max_workers)
        if low is None or high is None or not 0 < high < low:
            return []
        if self.min_workers is not KEEP:
            return [Problem("min_workers", f"{low} is not allowed; use at most {high}, the maximum")]
        if self.max_workers is not KEEP:
            return [Problem("max_workers", f"{high} is not allowed; use {low} or more, the minimum")]
        return []

    def applied_to(self, runtime: Runtime) -> Json:
        """Return the object of a runtime with these settings.

        Raises:
            InvalidJobError: They do not fit the runtime.
        """
        if problems := self.problems_with(runtime):
            raise InvalidJobError(problems)
        manifest = deepcopy(runtime.manifest)
        notes = manifest["metadata"].get("annotations") or {}
        for field, name in ANNOTATIONS.items():
            value = getattr(self, field)
            if value is KEEP:
                continue
            notes.pop(name, None)
            if value is not None:
                notes[name] = str(int(parse_duration(value)))
        labels = self.required_node_labels
        texts = {
            NODE_LABELS: text_of_labels(labels) if isinstance(labels, Mapping) else labels,
            ALLOW_EGRESS: self.allow_egress,
        }
        for name, text in texts.items():
            if text is KEEP:
                continue
            notes.pop(name, None)
            if text:
                notes[name] = text
        manifest["metadata"]["annotations"] = notes
        if self.slots is not None:
            manifest["spec"]["mlPolicy"]["mpi"]["numProcPerNode"] = self.slots
        for pod in pods_of(manifest):
            if not isinstance(labels, Keep):
                require_labels(pod, labels_in(runtime.node_labels), labels or {})
            if self.priority_class is not KEEP:
                pod.pop("priorityClassName", None)
                if self.priority_class is not None:
                    pod["priorityClassName"] = self.priority_class
            if self.run_as_user is not None:
                context = pod.setdefault("securityContext", {})
                context["runAsUser"] = context["runAsGroup"] = self.run_as_user
        if self.image is not None:
            replace_image(manifest["spec"], runtime.image, self.image)
        if self.agent_image is not None:
            replace_agent(manifest["spec"], self.agent_image)
        return manifest


def number_in(text: str | None) -> int | None:
    """Return the number of an annotation; None for none, and for a text that is no number."""
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def problems_of_image(field: str, image: object) -> list[Problem]:
    """Return what is wrong with an image of a runtime; None keeps it."""
    if image is None:
        return []
    if isinstance(image, str) and has_parameter(image):
        return [Problem(field, f"{image!r} is not allowed; a runtime has no parameters")]
    found = problem_of_image(image)
    return [Problem(field, found)] if found else []


def problems_of_number(
    field: str, value: object, least: int, hint: str = "", *, largest: int = LARGEST
) -> list[Problem]:
    """Return what is wrong with a whole number; None and KEEP are allowed."""
    if value is None or value is KEEP:
        return []
    number = whole(value)
    if number is not None and number > largest:
        return [Problem(field, f"{value!r} is not allowed; use {largest} or less")]
    if number is not None and number >= least:
        return []
    kind = "" if number is not None else "a whole number, "
    return [Problem(field, f"{value!r} is not allowed; use {kind}{least} or more{hint}")]


def problems_of_seconds(value: Any) -> list[Problem]:
    """Return what is wrong with a time limit of attempts to place pods; None and KEEP are allowed."""
    if value is None or value is KEEP:
        return []
    try:
        seconds = parse_duration(value)
    except ValueError:
        seconds = 0
    if 1 <= seconds <= LARGEST and seconds == int(seconds):
        return []
    text = f"{value!r} is not allowed; use whole seconds, 1 or more, such as '10m', or None for the default"
    return [Problem("gang_timeout", text)]


def problems_of_node_labels(labels: Any) -> list[Problem]:
    """Return what is wrong with the labels that nodes must have; None and KEEP are allowed."""
    if labels is None or labels is KEEP:
        return []
    found = problems_of_labels("required_node_labels", labels)
    if not found and has_parameter(text_of_labels(labels)):
        found = [Problem("required_node_labels", f"{labels!r} is not allowed; a runtime has no parameters")]
    return found


def problems_of_destinations(value: object) -> list[Problem]:
    """Return what is wrong with destinations, each of which the cluster checks; None and KEEP are allowed."""
    if value is None or value is KEEP or (isinstance(value, str) and not has_parameter(value)):
        return []
    allowed = "use destinations, separated by commas, such as '192.0.2.7:2049,namespace/minio:9000'"
    return [Problem("allow_egress", f"{value!r} is not allowed; {allowed}")]


def text_of_labels(labels: Mapping[str, str]) -> str:
    """Return labels as the annotation of a runtime has them."""
    return ",".join(f"{name}={value}" for name, value in labels.items())


def labels_in(text: str | None) -> dict[str, str]:
    """Return the labels in the annotation of a runtime, without what is none."""
    parts = (part.strip().partition("=") for part in (text or "").split(","))
    return {name: value for name, equals, value in parts if equals}


def require_labels(pod: Json, before: Mapping[str, str], labels: Mapping[str, str]) -> None:
    """Have a pod run on nodes with some labels, in place of those that were required before."""
    selector = {name: value for name, value in (pod.get("nodeSelector") or {}).items() if before.get(name) != value}
    selector.update(labels)
    pod.pop("nodeSelector", None)
    if selector:
        pod["nodeSelector"] = selector


def pods_of(manifest: Json) -> list[Json]:
    """Return the specifications of the pods of a runtime, one for each of its jobs. What is missing is added."""
    jobs = ((manifest["spec"].get("template") or {}).get("spec") or {}).get("replicatedJobs") or []
    pods = []
    for job in jobs:
        at = job
        for step in ("template", "spec", "template", "spec"):
            at = at.setdefault(step, {})
        pods.append(at)
    return pods


def each_object(value: Any, change: Callable[[Json], None]) -> None:
    """Have a function change each object in JSON, from the outside in."""
    if isinstance(value, dict):
        change(value)
    for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        each_object(each, change)


def replace_image(spec: Json, before: str | None, image: str) -> None:
    """Replace the image of the containers that have it, but not of init containers."""

    def change(pod: Json) -> None:
        containers = pod.get("containers")
        for container in containers if isinstance(containers, list) else ():
            if isinstance(container, dict) and container.get("image") == before:
                container["image"] = image

    each_object(spec, change)


def replace_agent(spec: Json, image: str) -> None:
    """Replace the image that brings the agent: of the init container that copies it, or of the volume."""

    def change(pod: Json) -> None:
        for field, steps in (("initContainers", ("image",)), ("volumes", ("image", "reference"))):
            entries = pod.get(field)
            for entry in entries if isinstance(entries, list) else ():
                at = entry if isinstance(entry, dict) and entry.get("name") == AGENT else {}
                for step in steps[:-1]:
                    at = at.get(step) or {}
                if steps[-1] in at:
                    at[steps[-1]] = image

    each_object(spec, change)
