"""Tests runtimes: the operator runs a small job for a RuntimeTest, as for ``kubectl odh mpijob runtimes test``."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

from openshift_ai_sdk.training import _quantity
from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._duration import Duration, is_duration, parse_duration
from openshift_ai_sdk.training._generated.runtimetest import Check as RuntimeCheck
from openshift_ai_sdk.training._generated.runtimetest import RuntimeTestStatus
from openshift_ai_sdk.training._interrupt import detachable
from openshift_ai_sdk.training._kinds import LABEL_QUEUE, Resource
from openshift_ai_sdk.training._resource_rules import DEVICE
from openshift_ai_sdk.training._runtime_changes import problems_of_reference, resolve
from openshift_ai_sdk.training._runtime_settings import problems_of_image
from openshift_ai_sdk.training._runtimes import Runtime
from openshift_ai_sdk.training._shipped_runtimes import SHIPPED
from openshift_ai_sdk.training._value_rules import LABEL_VALUE, OBJECT_NAME_RULE, is_object_name
from openshift_ai_sdk.training.errors import JobNotFoundError, Problem, TrainingError

RUNTIME_TEST = Resource("mpi.opendatahub.io/v1alpha1", "RuntimeTest", "runtimetests")
SHORTEST, LONGEST = 10, 3600
# For how many seconds a test is kept that nobody waits for.
KEPT = 24 * 3600
# How long the operator may take longer than the test, and the pauses between two looks, in seconds.
PATIENCE = 60.0
PAUSE = 0.5
# The API server adds 5 letters to it.
LONGEST_PREFIX = 39


@dataclass(frozen=True)
class RuntimeTest:
    """A test of a runtime.

    Attributes:
        name: The name of the RuntimeTest.
        namespace: Where it runs.
        runtime: The runtime's name.
        phase: ``Pending``, ``Running``, ``Passed`` or ``Failed``.
        message: The result as a sentence.
        checks: The steps with their results, in order.
        latency: Half of the round trip of an MPI message of 8 bytes, in seconds; None if it was not measured.
        bandwidth: That of MPI messages of 4 MiB, in bytes per second; None if it was not measured.
        method: The MPI library of the image with which it was measured, such as ``Open MPI 5.0.7``; None if it was not.
        job: The TrainJob of the test, whose report has more details; None if it was not created.
    """

    name: str
    namespace: str
    runtime: str
    phase: str
    message: str
    checks: list[RuntimeCheck]
    latency: float | None
    bandwidth: int | None
    method: str | None
    job: str | None

    @property
    def passed(self) -> bool:
        """Whether no step has failed."""
        return self.phase == "Passed"


@dataclass(frozen=True)
class TestRequest:
    """A test to start.

    Attributes:
        runtime: The reference of the runtime.
        image: Replaces the runtime's image.
        cpu: What each pod asks for; one of them replaces all resources of the runtime.
        memory: As cpu.
        gpu: As cpu.
        gpu_resource: The name of the GPU resource.
        queue: The LocalQueue of the test.
        timeout: How long the test may run.
        keep: Whether the test stays when it has passed.
        wait: Whether to wait for its end.
    """

    __test__ = False  # It is no test of pytest.

    runtime: str
    image: str | None
    cpu: int | float | str | None
    memory: str | None
    gpu: int | str | None
    gpu_resource: str
    queue: str | None
    timeout: Duration
    keep: bool
    wait: bool

    def problems(self) -> list[Problem]:
        """Return what is wrong with it."""
        found = problems_of_reference(self.runtime, "name")
        if not found and self.runtime.startswith(SHIPPED):
            text = f"{self.runtime!r} is not in the cluster; create a runtime from it, and test that one"
            found.append(Problem("name", text))
        found += problems_of_image("image", self.image)
        if not isinstance(self.gpu_resource, str) or not DEVICE.fullmatch(self.gpu_resource):
            text = f"{self.gpu_resource!r} is not the name of a device; use one such as 'nvidia.com/gpu'"
            found.append(Problem("gpu_resource", text))
        for field, (resource, value) in self.amounts().items():
            if value is not None and (problem := _quantity.problem_of(str(resource), value)):
                found.append(Problem(field, problem))
        if self.queue is not None and not (is_object_name(self.queue) and LABEL_VALUE.fullmatch(self.queue)):
            found.append(Problem("queue", f"{self.queue!r} is not the name of a LocalQueue; {OBJECT_NAME_RULE}"))
        if not is_duration(self.timeout, SHORTEST, LONGEST):
            found.append(Problem("timeout", f"{self.timeout!r} is not allowed; use '10s' to '1h'"))
        return found

    def amounts(self) -> dict[str, tuple[str, object]]:
        """Return the resource and the amount of each argument."""
        return {
            "cpu": ("cpu", self.cpu),
            "memory": ("memory", self.memory),
            "gpu": (self.gpu_resource, self.gpu),
        }

    def manifest(self, runtime: Runtime) -> Json:
        """Return the RuntimeTest of a runtime."""
        spec: Json = {
            "runtimeRef": {"kind": runtime.kind, "name": runtime.name},
            "timeoutSeconds": int(parse_duration(self.timeout)),
        }
        if self.image is not None:
            spec["image"] = self.image
        requests = {resource: str(amount) for resource, amount in self.amounts().values() if amount is not None}
        if requests:
            # As for new jobs, CPU has no limit.
            limits = {resource: amount for resource, amount in requests.items() if resource != "cpu"}
            spec["resourcesPerNode"] = {"requests": requests, "limits": limits}
        if not self.wait and not self.keep:
            spec["ttlSecondsAfterFinished"] = KEPT
        meta: Json = {"generateName": f"{runtime.name[:LONGEST_PREFIX]}-"}
        if self.queue is not None:
            meta["labels"] = {LABEL_QUEUE: self.queue}
        return {"apiVersion": RUNTIME_TEST.api_version, "kind": RUNTIME_TEST.kind, "metadata": meta, "spec": spec}


async def run_test(cluster: Cluster, namespace: str, request: TestRequest) -> RuntimeTest:
    """Start a test of a runtime, and return it when it has ended, or at once if nobody waits for it."""
    runtime = await resolve(cluster, namespace, request.runtime)
    item = await cluster.api.create(RUNTIME_TEST, namespace, request.manifest(runtime))
    if not request.wait:
        return read(item)
    name = item["metadata"]["name"]
    see = f"kubectl get runtimetest {name} -n {namespace}"
    with detachable(f"the test {name} of {runtime.name} continues", f"run {see} to see it"):
        ended = await await_end(cluster, item)
    if ended.passed and not request.keep:
        try:
            await cluster.api.delete(RUNTIME_TEST, namespace, name, item["metadata"]["uid"])
        except JobNotFoundError:
            pass
        except TrainingError as error:
            warnings.warn(f"runtimetest/{name} could not be deleted: {error}", stacklevel=2)
    return ended


async def await_end(cluster: Cluster, item: Json) -> RuntimeTest:
    """Return a test when it has ended, at most a minute after its timeout.

    Raises:
        TrainingError: The operator has not ended it in time.
    """
    meta, driver = item["metadata"], cluster.api.driver
    patience = item["spec"]["timeoutSeconds"] + PATIENCE
    deadline = driver.monotonic() + patience
    while True:
        item = await cluster.api.get(RUNTIME_TEST, meta["namespace"], meta["name"])
        if (item.get("status") or {}).get("completionTime"):
            return read(item)
        if driver.monotonic() > deadline:
            known = (item.get("status") or {}).get("message") or "no message"
            raise TrainingError(
                f"runtimetest/{meta['name']} has no result after {patience:.0f} s: {known}; check that the operator "
                "runs, for example with kubectl odh mpijob doctor"
            )
        await driver.sleep(PAUSE)


def read(item: Json) -> RuntimeTest:
    """Return the test that an object describes."""
    status = RuntimeTestStatus.model_validate(item.get("status") or {})
    measured: Any = status.communication
    return RuntimeTest(
        name=item["metadata"]["name"],
        namespace=item["metadata"]["namespace"],
        runtime=item["spec"]["runtimeRef"]["name"],
        phase=str(status.phase or "Pending"),
        message=status.message or "",
        checks=status.checks,
        latency=measured and measured.latency_nanoseconds / 1e9,
        bandwidth=measured and measured.bytes_per_second,
        method=measured and measured.method,
        job=status.job_ref.name if status.job_ref else None,
    )
