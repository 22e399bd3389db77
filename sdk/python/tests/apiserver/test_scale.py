"""Many jobs at once: how long submitting takes, and what waiting costs. `make sdk-bench` prints the figures."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as kubernetes_client
from servers import Cluster, Operator, stamp

from openshift_ai_sdk.training import MPIJob, TrainingClient, _driver_asyncio, _driver_blocking, aio
from openshift_ai_sdk.training._driver import Request

SUBMISSIONS = 100
WAITING = 1000
UID = "11111111-2222-3333-4444-555555555555"
RUNNING = {"phase": "Running", "completionTime": None}


@pytest.fixture(scope="module")
def figures() -> Iterator[dict[str, Any]]:
    """What was measured; it is written to the file in $SDK_BENCH."""
    measured: dict[str, Any] = {}
    yield measured
    if path := os.environ.get("SDK_BENCH"):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(json.dumps(measured, indent=2) + "\n")


def percentile(durations: list[float], share: float) -> float:
    return sorted(durations)[int(share * len(durations)) - 1]


def resident() -> float:
    """Return the memory of this process, in MiB."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def at_once(submit: Callable[[int], object]) -> list[float]:
    """Call a function with the numbers of many jobs at once, and return how long each call took, in seconds."""
    barrier = threading.Barrier(SUBMISSIONS)

    def timed(number: int) -> float:
        barrier.wait()
        began = time.monotonic()
        submit(number)
        return time.monotonic() - began

    with ThreadPoolExecutor(SUBMISSIONS) as pool:
        return list(pool.map(timed, range(SUBMISSIONS)))


def test_submitting_100_jobs_at_once(
    cluster: Cluster, operator: Operator, capsys: pytest.CaptureFixture[str], figures: dict[str, Any]
) -> None:
    manifest = MPIJob("raw", operator.namespace, image="image", command="x").manifest
    api = kubernetes_client.CustomObjectsApi(kubernetes_client.ApiClient(cluster.configuration()))

    def raw(number: int) -> None:
        body = {**manifest, "metadata": {"name": f"raw-{number}"}}
        api.create_namespaced_custom_object("kubeflow.org", "v2beta1", operator.namespace, "mpijobs", body)

    async def with_asyncio() -> list[float]:
        async with aio.TrainingClient(operator.namespace, configuration=cluster.configuration()) as sdk:

            async def timed(number: int) -> float:
                began = time.monotonic()
                await sdk.create_job(f"aio-{number}", container_image="image", command="x")
                return time.monotonic() - began

            return await asyncio.gather(*map(timed, range(SUBMISSIONS)))

    durations = {"kubernetes client": at_once(raw)}
    with TrainingClient(operator.namespace, configuration=cluster.configuration()) as sdk:
        durations["SDK"] = at_once(lambda number: sdk.create_job(f"sdk-{number}", container_image="image", command="x"))
    durations["SDK, asyncio"] = asyncio.run(with_asyncio())
    with capsys.disabled():
        print(f"\n{SUBMISSIONS} submissions at once, seconds each:")
        for name, each in durations.items():
            figures[f"submit/{name}"] = {"p50": percentile(each, 0.5), "p99": percentile(each, 0.99)}
            print(f"  {name:18} p50 {percentile(each, 0.5):.2f}  p99 {percentile(each, 0.99):.2f}")
    # The requirement is 5 s, the aim 1 s. On a machine with other work the official client alone may take as long.
    slowest = max(percentile(durations["SDK"], 0.99), percentile(durations["SDK, asyncio"], 0.99))
    assert slowest < max(5, 3 * percentile(durations["kubernetes client"], 0.99))


class Counted:
    """Counts the requests of both faces."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.requests: list[Request] = []
        blocking, asynchronous = _driver_blocking.BlockingDriver._send, _driver_asyncio.AsyncDriver._send

        def send(driver: Any, request: Request, *options: Any, **named: Any) -> Any:
            self.requests.append(request)
            return blocking(driver, request, *options, **named)

        async def send_async(driver: Any, session: Any, request: Request, *options: Any) -> Any:
            self.requests.append(request)
            return await asynchronous(driver, session, request, *options)

        monkeypatch.setattr(_driver_blocking.BlockingDriver, "_send", send)
        monkeypatch.setattr(_driver_asyncio.AsyncDriver, "_send", send_async)


def test_1000_futures_share_a_connection(
    cluster: Cluster,
    operator: Operator,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    figures: dict[str, Any],
) -> None:
    counted = Counted(monkeypatch)
    names = [f"job-{number}" for number in range(WAITING)]
    in_parallel(lambda name: operator.create_report("MPIJob", name, UID, {"phase": "Running"}), names)

    def threads(on_phase: Any) -> list[str]:
        with TrainingClient(operator.namespace, configuration=cluster.configuration()) as sdk:
            mine = [created(MPIJob(name, image="image", command="x", client=sdk)) for name in names]
            with ThreadPoolExecutor(WAITING) as pool:
                futures = [pool.submit(job.wait_for_completion, 300, on_phase=on_phase) for job in mine]
                return [future.result().name for future in futures]

    def tasks(on_phase: Any) -> list[str]:
        async def wait() -> list[str]:
            async with aio.TrainingClient(operator.namespace, configuration=cluster.configuration()) as sdk:
                mine = [created(aio.MPIJob(name, image="image", command="x", client=sdk)) for name in names]
                statuses = await asyncio.gather(*(job.wait_for_completion(300, on_phase=on_phase) for job in mine))
                return [status.name for status in statuses]

        return asyncio.run(wait())

    for name, wait in (("1 thread each", threads), ("1 asyncio task each", tasks)):
        if wait is tasks:
            # They have ended before.
            in_parallel(lambda job: operator.change_report(job, UID, RUNNING), names)
        figure = measure(counted, operator, names, wait)
        figures[f"wait/{name}"] = figure
        with capsys.disabled():
            print(f"\nwaiting for {WAITING} jobs, {name}: " + ", ".join(f"{key} {figure[key]}" for key in figure))
        # One thread more does the watching; asyncio has a few that read files.
        assert figure["threads"] <= (WAITING + 1 if wait is threads else 40)
        # The first few waiters have watches of their own, and there is the one that the others share.
        assert figure["watches"] <= 8 and figure["requests"] <= 20


def created(job: Any) -> Any:
    """Return a job as its creation leaves it: with its uid, which is looked up otherwise."""
    job._uid = UID
    return job


def in_parallel(change: Callable[[str], None], names: list[str]) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(change, names))


def measure(counted: Counted, operator: Operator, jobs: list[str], wait: Callable[[Any], list[str]]) -> dict[str, int]:
    """Wait for jobs, which end as soon as all of them are waited for, and return what that costs."""
    seen: set[str] = set()
    lock = threading.Lock()
    all_wait = threading.Event()
    threads_before, memory_before = threading.active_count(), resident()
    most: dict[str, int] = {}

    def on_phase(status: Any) -> None:
        with lock:
            seen.add(status.name)
            if len(seen) == len(jobs) and not all_wait.is_set():
                most["threads"] = threading.active_count() - threads_before
                most["MiB"] = round(resident() - memory_before)
                all_wait.set()

    def finish() -> None:
        all_wait.wait(120)
        done = {"phase": "Succeeded", "completionTime": stamp()}
        in_parallel(lambda job: operator.change_report(job, UID, done), jobs)

    finishing = threading.Thread(target=finish)
    threads_before += 1
    counted.requests.clear()
    finishing.start()
    names = wait(on_phase)
    finishing.join()
    assert names == jobs
    watches = sum(1 for request in counted.requests if request.query.get("watch"))
    return {**most, "requests": len(counted.requests), "watches": watches}
