"""An API server that is killed, and watches that expire."""

from __future__ import annotations

import asyncio
import socketserver
import threading
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from faces import Aio, Sync
from kubernetes import client
from servers import Cluster, Operator, free_port, openssl, stamp, wait_until

from openshift_ai_sdk.training import (
    ClusterUnreachableError,
    JobStatus,
    MPIJob,
    NotLoggedInError,
    RetryPolicy,
    TLSError,
    TrainingClient,
    _apiserver,
    _driver_asyncio,
    aio,
)

OUTAGE = 30.0


def test_an_outage_of_30_seconds_loses_no_event_and_no_line(cluster: Cluster, operator: Operator) -> None:
    """Both faces follow a job at the same time, with the default settings, and wait for it to succeed."""
    with TrainingClient(operator.namespace, configuration=cluster.configuration()) as client:
        job = client.create_job("train", container_image="image", command="x")
        operator.report(job, "Running")
        log = operator.pod(job, "train-launcher-a")
        log.say("line 0")
        began = threading.Barrier(3)
        with ThreadPoolExecutor(2) as pool:
            followers = [
                pool.submit(follow, face, operator.namespace, cluster.configuration(), began) for face in (Sync, Aio)
            ]
            began.wait(60)
            cluster.kill_server()
            away = threading.Event()
            for number in range(1, 31):
                # The program goes on while nobody can reach the API server.
                log.say(f"line {number}")
                away.wait(OUTAGE / 30)
            cluster.start_server()
            for phase in ("Suspended", "Running"):
                operator.report(job, phase)
            log.say("line 31")
            operator.pod(job, "train-launcher-a", "succeeded")
            log.end()
            operator.report(job, "Succeeded")
            for follower in followers:
                lines, events, phase = follower.result(180)
                assert lines == [f"line {number}" for number in range(32)]
                assert events == ["Running", "Suspended", "Running", "Succeeded"]
                assert phase == "Succeeded"


def follow(
    face_class: type[Any], namespace: str, configuration: Any, began: threading.Barrier
) -> tuple[list[str], list[str], str]:
    """Follow the job's log, its events and its phase by one face, until it has ended."""
    face = face_class()
    client = face.TrainingClient(namespace, configuration=configuration)
    job = client.get_job("train")
    lines, events = [], job.stream_events()
    names = [next(events).name]
    for line in job.get_logs(follow=True):
        if not lines:
            began.wait(60)
        lines.append(line.text)
    names += [event.name for event in events]
    phase = str(job.wait_for_completion(timeout=60).phase)
    client.close()
    face.close()
    return lines, names, phase


def test_waiting_outlasts_an_api_server_that_is_away(cluster: Cluster, operator: Operator, face: Any) -> None:
    quick = RetryPolicy(initial=0.05, maximum=0.5, patience=120)
    client = face.TrainingClient(operator.namespace, configuration=cluster.configuration(), retry=quick)
    job = client.create_job("train", container_image="image", command="x")
    operator.report(job, "Running")
    breakers = []

    def on_phase(status: Any) -> None:
        if status.phase == "Running":
            cluster.kill_server()

            def come_back() -> None:
                cluster.start_server()
                operator.report(job, "Succeeded")

            breakers.append(threading.Thread(target=come_back))
            breakers[0].start()

    assert job.wait_for_completion(timeout=120, on_phase=on_phase).phase == "Succeeded"
    breakers[0].join()
    client.close()


def test_waiters_that_share_a_watch_outlast_an_outage(cluster: Cluster, operator: Operator) -> None:
    quick = RetryPolicy(initial=0.05, maximum=0.5, patience=120)
    names = [f"job-{number}" for number in range(8)]
    uid = "11111111-2222"
    for name in names:
        operator.create_report("MPIJob", name, uid, {"phase": "Running"})
    waiting: list[str] = []

    def on_phase(status: JobStatus) -> None:
        waiting.append(status.name)

    def in_thread(client: TrainingClient, name: str) -> str:
        job = MPIJob(name, image="image", command="x", client=client)
        return str(job.wait_for_completion(timeout=120, on_phase=on_phase).phase)

    async def in_task(client: aio.TrainingClient, name: str) -> str:
        job = aio.MPIJob(name, image="image", command="x", client=client)
        return str((await job.wait_for_completion(120, on_phase=on_phase)).phase)

    async def tasks() -> list[str]:
        async with aio.TrainingClient(operator.namespace, configuration=cluster.configuration(), retry=quick) as client:
            return await asyncio.gather(*(in_task(client, name) for name in names))

    with (
        TrainingClient(operator.namespace, configuration=cluster.configuration(), retry=quick) as client,
        ThreadPoolExecutor(len(names) + 1) as pool,
    ):
        futures = [pool.submit(in_thread, client, name) for name in names]
        of_tasks = pool.submit(asyncio.run, tasks())
        wait_until(lambda: len(waiting) == 2 * len(names), "all wait")
        cluster.kill_server()
        cluster.start_server()
        for name in names:
            operator.change_report(name, uid, {"phase": "Succeeded", "completionTime": stamp()})
        assert [future.result(120) for future in futures] == ["Succeeded"] * len(names)
        assert of_tasks.result(120) == ["Succeeded"] * len(names)
    wait_until(lambda: not watchers(), "the shared watch has ended")


def watchers() -> list[threading.Thread]:
    return [each for each in threading.enumerate() if each.name == "openshift-ai-sdk"]


def test_those_who_share_a_watch_are_told_that_it_failed(cluster: Cluster, operator: Operator) -> None:
    impatient = RetryPolicy(initial=0.05, maximum=0.1, patience=0.5)
    with (
        TrainingClient("default", configuration=cluster.configuration(), retry=impatient) as client,
        ThreadPoolExecutor(8) as pool,
    ):
        cluster.kill_server()
        jobs = [MPIJob(f"job-{number}", image="image", command="x", client=client) for number in range(8)]
        futures = [pool.submit(job.wait_for_completion, 60) for job in jobs]
        errors = [future.exception(60) for future in futures]
        cluster.start_server()
    assert [type(error) for error in errors] == [ClusterUnreachableError] * len(jobs)


def test_patience_has_an_end(cluster: Cluster, face: Any) -> None:
    impatient = RetryPolicy(initial=0.05, maximum=0.1, patience=0.5)
    client = face.TrainingClient("default", configuration=cluster.configuration(), retry=impatient)
    cluster.kill_server()
    with pytest.raises(ClusterUnreachableError, match="cannot be reached"):
        client.list_jobs()
    client.close()
    cluster.start_server()


def test_a_renewed_login_is_read_again(cluster: Cluster, operator: Operator, face: Any, tmp_path: Any) -> None:
    kubeconfig = cluster.kubeconfig(tmp_path / "config", namespace=operator.namespace)
    client = face.TrainingClient(kubeconfig=str(kubeconfig))
    assert client.namespace == operator.namespace
    assert list(client.list_jobs()) == []
    client.close()
    expired = face.TrainingClient(kubeconfig=str(cluster.kubeconfig(tmp_path / "other", "expired")))
    with pytest.raises(NotLoggedInError, match="oc login"):
        expired.list_jobs()
    cluster.kubeconfig(tmp_path / "other")
    assert list(expired.list_jobs()) == []
    expired.close()


def wrong_ca(cluster: Cluster, folder: Path) -> client.Configuration:
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(folder / "key"), "-out", str(folder / "ca"),
            "-subj", "/CN=another")  # fmt: skip
    configuration = cluster.configuration()
    configuration.ssl_ca_cert = str(folder / "ca")
    return configuration


def wrong_name(cluster: Cluster, folder: Path) -> client.Configuration:
    configuration = cluster.configuration()
    configuration.host = configuration.host.replace("127.0.0.1", "localhost")
    return configuration


class WithoutTLS(socketserver.BaseRequestHandler):
    """Answers as web servers do when they get a TLS handshake where they expect HTTP."""

    def handle(self) -> None:
        self.request.recv(1)
        self.request.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")


def no_tls(cluster: Cluster, folder: Path) -> client.Configuration:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), WithoutTLS)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    configuration = cluster.configuration()
    configuration.host = f"https://127.0.0.1:{server.server_address[1]}"
    return configuration


def tls_without_https(cluster: Cluster, folder: Path) -> client.Configuration:
    configuration = cluster.configuration()
    configuration.host = configuration.host.replace("https", "http")
    return configuration


def broken_ca(cluster: Cluster, folder: Path) -> client.Configuration:
    (folder / "ca").write_text("no certificate")
    configuration = cluster.configuration()
    configuration.ssl_ca_cert = str(folder / "ca")
    return configuration


def missing_ca(cluster: Cluster, folder: Path) -> client.Configuration:
    configuration = cluster.configuration()
    configuration.ssl_ca_cert = str(folder / "none")
    return configuration


PATIENT = RetryPolicy(patience=30)
UNSAFE = {
    wrong_ca: r"the certificate of the cluster at https://127.* is not accepted: .*; certificate-authority in your "
    r"kubeconfig must be that of this cluster: log in again",
    wrong_name: r"is not accepted: .*localhost.*; use the name that the certificate is for",
    no_tls: r"does not use TLS \(.*\): check the port and the scheme",
    tls_without_https: r"the address needs https",
    broken_ca: r"the certificates for the cluster at .* cannot be read",
    missing_ca: r"the certificates for the cluster at .* cannot be read",
}


@pytest.mark.parametrize("configure", UNSAFE, ids=lambda configure: configure.__name__)
def test_a_connection_that_is_not_secure_fails_at_once(
    configure: Any, cluster: Cluster, operator: Operator, face: Any, tmp_path: Path
) -> None:
    unsafe = face.TrainingClient(operator.namespace, configuration=configure(cluster, tmp_path), retry=PATIENT)
    for call in (unsafe.list_jobs, lambda: unsafe.create_job("train", container_image="image", command="x")):
        with pytest.raises(TLSError, match=UNSAFE[configure]):
            call()
    job = face.MPIJob("train", operator.namespace, client=unsafe, image="image", command="x")
    for follow_it in (job.wait_for_completion, lambda: list(job.stream_events())):
        with pytest.raises(TLSError, match=UNSAFE[configure]):
            follow_it()
    unsafe.close()


def test_a_token_that_is_not_accepted_fails_at_once(cluster: Cluster, operator: Operator, face: Any) -> None:
    wrong = face.TrainingClient(operator.namespace, configuration=cluster.configuration("wrong"), retry=PATIENT)
    job = face.MPIJob("train", operator.namespace, client=wrong, image="image", command="x")
    for call in (wrong.list_jobs, job.create, job.wait_for_completion, lambda: list(job.stream_events())):
        with pytest.raises(NotLoggedInError, match="log in again, for example with oc login"):
            call()
    wrong.close()


def test_a_renewed_certificate_authority_is_read_again(
    cluster: Cluster, operator: Operator, face: Any, tmp_path: Path
) -> None:
    kubeconfig = cluster.kubeconfig(tmp_path / "config", namespace=operator.namespace)
    right = kubeconfig.read_text()
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", str(tmp_path / "key"), "-out",
            str(tmp_path / "ca"), "-subj", "/CN=another")  # fmt: skip
    kubeconfig.write_text(right.replace(str(cluster.folder / "cert.pem"), str(tmp_path / "ca")))
    renewed = face.TrainingClient(kubeconfig=kubeconfig, retry=PATIENT)
    with pytest.raises(TLSError):
        renewed.list_jobs()
    kubeconfig.write_text(right)
    assert list(renewed.list_jobs()) == []
    renewed.close()


def test_a_server_that_is_no_api_server_is_told(face: Any) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>Log in</html>")

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    configuration = client.Configuration(host=f"http://127.0.0.1:{server.server_address[1]}")
    page = face.TrainingClient("ns", configuration=configuration, retry=PATIENT)
    with pytest.raises(ClusterUnreachableError, match="is not an API server of Kubernetes"):
        page.list_jobs()
    page.close()
    server.shutdown()


def test_retries_do_not_stay_silent(cluster: Cluster, face: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_apiserver, "QUIET", 0)
    configuration = client.Configuration(host=f"http://127.0.0.1:{free_port()}")
    away = face.TrainingClient("ns", configuration=configuration, retry=RetryPolicy(initial=0.05, patience=3))
    with (
        pytest.warns(UserWarning, match=r"does not respond \(.*\); trying for \d+ s more"),
        pytest.raises(ClusterUnreachableError),
    ):
        away.list_jobs()
    away.close()


def test_asyncio_uses_no_thread(cluster: Cluster, operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a login that is not renewed, and a cluster with an address, nothing is done in a thread."""

    async def work() -> None:
        def in_thread(*arguments: object) -> None:
            raise AssertionError("a thread is used")

        monkeypatch.setattr(asyncio.get_running_loop(), "run_in_executor", in_thread)
        async with aio.TrainingClient(operator.namespace, configuration=cluster.configuration()) as used:
            job = await used.create_job("train", container_image="image", command="x")
            operator.report(job, "Succeeded")
            log = operator.pod(job, "train-launcher-a", "succeeded")
            log.say("line")
            log.end()
            await job.wait_for_completion(timeout=60)
            assert [event.name async for event in job.stream_events()] == ["Succeeded"]
            assert str(await job.get_logs()) == "line"

    asyncio.run(work())


def test_asyncio_asks_for_a_login_that_is_renewed_once_in_a_while(
    cluster: Cluster, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    configuration = cluster.configuration()
    configuration.refresh_api_key_hook = asked.append

    async def work() -> None:
        async with aio.TrainingClient(operator.namespace, configuration=configuration) as used:
            await asyncio.gather(*(used.list_jobs() for _ in range(10)))
            assert len(asked) == 1
            monkeypatch.setattr(_driver_asyncio, "FRESH", 0.0)
            used._driver._fresh_until = 0.0
            await used.list_jobs()
            assert len(asked) > 1

    asyncio.run(work())


def test_kubelet_is_idle_afterwards(cluster: Cluster) -> None:
    wait_until(lambda: cluster.kubelet.readers == 0, "no log is read any more", 90)
