"""A real API server with etcd, and a kubelet that serves made-up logs, for tests."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import urllib3
import yaml
from kubernetes import client

CRDS = Path(__file__).resolve().parents[3] / "config" / "crd"
TOKEN = "admin-token"


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def wait_until(condition: Any, what: str, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"waited {seconds} s in vain: {what}"
        threading.Event().wait(0.02)


class Cluster:
    """kube-apiserver and etcd as processes, with this repository's CRDs."""

    def __init__(self, folder: Path) -> None:
        self.binaries = Path(os.environ["KUBEBUILDER_ASSETS"])
        self.folder = folder
        self.port = free_port()
        self.etcd_port, peer = free_port(), free_port()
        (folder / "tokens.csv").write_text(f'{TOKEN},admin,admin,"system:masters"\nuser-token,ann,ann,"people"\n')
        key = folder / "key.pem"
        openssl("genrsa", "-out", str(key), "2048")
        openssl(
            "req",
            "-x509",
            "-key",
            str(key),
            "-out",
            str(folder / "cert.pem"),
            "-days",
            "2",
            "-subj",
            "/CN=test",
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "keyUsage=digitalSignature,keyCertSign,keyEncipherment",
        )
        url = f"http://127.0.0.1:{self.etcd_port}"
        self.etcd = self.start(
            "etcd",
            f"--data-dir={folder}/etcd",
            f"--listen-client-urls={url}",
            f"--advertise-client-urls={url}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )
        self.server: subprocess.Popen[bytes] | None = None
        self.start_server()
        self.api = client.ApiClient(self.configuration())
        self.kubelet = Kubelet(folder)
        self.install()

    def start(self, program: str, *arguments: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{program}.log").open("ab")
        return subprocess.Popen([self.binaries / program, *arguments], stdout=log, stderr=log)

    def start_server(self) -> None:
        key, folder = self.folder / "key.pem", self.folder
        self.server = self.start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
            f"--secure-port={self.port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--cert-dir={folder}",
            f"--tls-cert-file={folder}/cert.pem",
            f"--tls-private-key-file={key}",
            f"--token-auth-file={folder}/tokens.csv",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--disable-admission-plugins=ServiceAccount",
            "--service-account-issuer=https://127.0.0.1",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--kubelet-preferred-address-types=InternalIP",
            "--endpoint-reconciler-type=none",
            "--shutdown-delay-duration=0s",
        )

        def ready() -> bool:
            assert self.server is not None and self.server.poll() is None, (folder / "kube-apiserver.log").read_text()[
                -2000:
            ]
            try:
                answer = connections.request(
                    "GET", f"https://127.0.0.1:{self.port}/readyz", headers=headers, retries=False
                )
            except urllib3.exceptions.HTTPError:
                return False
            return bool(answer.status == 200)

        headers = {"authorization": f"Bearer {TOKEN}"}
        connections = urllib3.PoolManager(ca_certs=str(self.folder / "cert.pem"))
        wait_until(ready, "the API server is ready", 180)

    def kill_server(self) -> None:
        assert self.server is not None
        self.server.kill()
        self.server.wait()

    def configuration(self, token: str = TOKEN) -> client.Configuration:
        made = client.Configuration(host=f"https://127.0.0.1:{self.port}")
        made.ssl_ca_cert = str(self.folder / "cert.pem")
        made.api_key = {"BearerToken": token, "authorization": token}
        made.api_key_prefix = {"BearerToken": "Bearer", "authorization": "Bearer"}
        made.retries = False
        return made

    def kubeconfig(self, path: Path, token: str = TOKEN, namespace: str = "default") -> Path:
        path.write_text(
            yaml.safe_dump(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "test",
                    "clusters": [
                        {
                            "name": "test",
                            "cluster": {
                                "server": f"https://127.0.0.1:{self.port}",
                                "certificate-authority": str(self.folder / "cert.pem"),
                            },
                        }
                    ],
                    "users": [{"name": "test", "user": {"token": token}}],
                    "contexts": [
                        {"name": "test", "context": {"cluster": "test", "user": "test", "namespace": namespace}}
                    ],
                }
            )
        )
        return path

    def install(self) -> None:
        extensions, core = client.ApiextensionsV1Api(self.api), client.CoreV1Api(self.api)
        names = ["kubeflow.org_mpijobs", "mpi.opendatahub.io_jobreports", "mpi.opendatahub.io_runtimetests"]
        for name in names:
            extensions.create_custom_resource_definition(yaml.safe_load((CRDS / f"{name}.yaml").read_text()))
        for manifest in SMALL_CRDS:
            extensions.create_custom_resource_definition(manifest)

        custom = client.CustomObjectsApi(self.api)

        def served() -> bool:
            try:
                # Right after it is established, a kind may still answer that its storage is initializing.
                for item in extensions.list_custom_resource_definition().items:
                    version = item.spec.versions[0].name
                    custom.list_cluster_custom_object(item.spec.group, version, item.spec.names.plural)
            except client.ApiException:
                return False
            return all(
                any(each.type == "Established" and each.status == "True" for each in item.status.conditions or [])
                for item in extensions.list_custom_resource_definition().items
            )

        wait_until(served, "the CRDs are served", 180)
        node = core.create_node({"metadata": {"name": "node-1"}})
        node.status.addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
        node.status.daemon_endpoints = {"kubeletEndpoint": {"Port": self.kubelet.port}}
        core.replace_node_status("node-1", node)

    def stop(self) -> None:
        self.kubelet.stop()
        self.kill_server()
        self.etcd.kill()
        self.etcd.wait()


def small_crd(
    group: str, version: str, kind: str, plural: str, scope: str = "Namespaced", lists: tuple[str, ...] = ()
) -> dict[str, Any]:
    """A kind of another project, without a schema but for lists in its spec: its controller is not needed here."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    properties = {name: {"type": "array", "items": anything} for name in lists}
    schema = {**anything, "properties": {"spec": {**anything, "properties": properties}}}
    return {
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "versions": [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }


SMALL_CRDS = [
    # Since v2.2, TrainJobs of Kubeflow Trainer have runtimePatches.
    small_crd("trainer.kubeflow.org", "v1alpha1", "TrainJob", "trainjobs", lists=("runtimePatches",)),
    small_crd("trainer.kubeflow.org", "v1alpha1", "TrainingRuntime", "trainingruntimes"),
    small_crd("trainer.kubeflow.org", "v1alpha1", "ClusterTrainingRuntime", "clustertrainingruntimes", "Cluster"),
    small_crd("kueue.x-k8s.io", "v1beta2", "Workload", "workloads"),
    small_crd("console.openshift.io", "v1", "ConsoleLink", "consolelinks", "Cluster"),
]


def openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Log:
    """The log of a container, which grows."""

    def __init__(self) -> None:
        self.lines: list[tuple[datetime, str]] = []
        self.ended = False
        self.changed = threading.Condition()
        self.cuts = 0

    def say(self, text: str, at: datetime | None = None) -> None:
        with self.changed:
            self.lines.append((at or datetime.now(timezone.utc), text))
            self.changed.notify_all()

    def end(self) -> None:
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def cut(self) -> None:
        """Cut all connections that read the log."""
        with self.changed:
            self.cuts += 1
            self.changed.notify_all()


class Kubelet:
    """Serves logs as a kubelet does: with times, since a second, the last lines, and following."""

    def __init__(self, folder: Path) -> None:
        self.logs: dict[tuple[str, str], Log] = {}
        self.readers = 0
        kubelet = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                url = urllib.parse.urlparse(self.path)
                _, _, namespace, pod, _ = url.path.split("/")
                query = {key: value[0] for key, value in urllib.parse.parse_qs(url.query).items()}
                kubelet.serve(self, kubelet.log(namespace, pod), query)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = int(self.server.server_address[1])
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def log(self, namespace: str, pod: str) -> Log:
        return self.logs.setdefault((namespace, pod), Log())

    def serve(self, handler: BaseHTTPRequestHandler, log: Log, query: dict[str, str]) -> None:
        since = datetime.min.replace(tzinfo=timezone.utc)
        if "sinceTime" in query:
            since = datetime.fromisoformat(query["sinceTime"].replace("Z", "+00:00"))
        if "sinceSeconds" in query:
            since = datetime.now(timezone.utc) - timedelta(seconds=int(query["sinceSeconds"]))
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        sent = max(0, len(log.lines) - int(query["tailLines"])) if "tailLines" in query else 0
        cuts = log.cuts
        self.readers += 1
        try:
            while True:
                with log.changed:
                    if log.cuts != cuts:
                        # In the middle of a line, without an end of the body.
                        handler.wfile.write(b"7\r\n2026-01\r\n")
                        handler.wfile.flush()
                        handler.close_connection = True
                        handler.connection.shutdown(socket.SHUT_RDWR)
                        return
                    lines, ended = log.lines[sent:], log.ended
                    if not lines and not ended and query.get("follow") == "true":
                        log.changed.wait(1)
                        continue
                for at, text in lines:
                    if at >= since:
                        data = f"{at:%Y-%m-%dT%H:%M:%S.%f}000Z {text}\n".encode()
                        handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                handler.wfile.flush()
                sent += len(lines)
                if ended or query.get("follow") != "true":
                    break
            handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            return
        finally:
            self.readers -= 1

    def stop(self) -> None:
        self.server.shutdown()


class Operator:
    """Plays the operator in one namespace: writes reports and pods of jobs."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.core = client.CoreV1Api(cluster.api)
        self.custom = client.CustomObjectsApi(cluster.api)
        self.core.create_namespace({"metadata": {"name": namespace}})

    def report(self, job: Any, phase: str, **status: Any) -> None:
        """Write a job's report, with an entry of the timeline for a new phase."""
        uid = job.manifest["metadata"]["uid"]
        self.write_report(job.kind, job.name, uid, phase, **status)

    def change_report(self, name: str, uid: str, status: dict[str, Any]) -> None:
        """Change the report of a job, by one request."""
        place = ("mpi.opendatahub.io", "v1alpha1", self.namespace, "jobreports")
        # The answer is not parsed: tests change thousands of reports.
        self.custom.patch_namespaced_custom_object(
            *place, f"{name}-{uid[:8]}", {"status": status}, _preload_content=False
        ).read()

    def write_report(self, kind: str, name: str, uid: str, phase: str, **status: Any) -> None:
        group, version, plural = "mpi.opendatahub.io", "v1alpha1", "jobreports"
        report_name, now = f"{name}-{uid[:8]}", stamp()
        status = {"phase": phase, "phaseTimes": [{"phase": phase, "since": now, "seconds": 0}], **status}
        if phase in ("Succeeded", "Failed"):
            status.setdefault("completionTime", now)
        try:
            found = self.custom.get_namespaced_custom_object(group, version, self.namespace, plural, report_name)
        except client.ApiException as error:
            assert error.status == 404
            status.setdefault("timeline", [{"time": now, "event": phase}])
            self.create_report(kind, name, uid, status)
            return
        before = found["status"]
        status.setdefault("timeline", [*before.get("timeline", []), {"time": now, "event": phase}])
        status["phaseTimes"] = before.get("phaseTimes", []) + status["phaseTimes"]
        found["status"] = {**before, **status}
        self.custom.replace_namespaced_custom_object(group, version, self.namespace, plural, report_name, found)

    def create_report(self, kind: str, name: str, uid: str, status: dict[str, Any]) -> None:
        """Create the report of a job, by one request."""
        group, version, plural = "mpi.opendatahub.io", "v1alpha1", "jobreports"
        api_version = "kubeflow.org/v2beta1" if kind == "MPIJob" else "trainer.kubeflow.org/v1alpha1"
        report = {
            "apiVersion": f"{group}/{version}",
            "kind": "JobReport",
            "metadata": {
                "name": f"{name}-{uid[:8]}",
                "labels": {"mpi.opendatahub.io/job-name": name[:63], "mpi.opendatahub.io/job-kind": kind},
            },
            "spec": {"jobRef": {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}},
            "status": status,
        }
        self.custom.create_namespaced_custom_object(
            group, version, self.namespace, plural, report, _preload_content=False
        ).read()

    def pod(self, job: Any, name: str, state: str = "running", restarts: int = 0) -> Log:
        """Make a pod of a job, or change it, and return its log."""
        role = "launcher" if "launcher" in name else "worker"
        labels = {
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": job.name,
            "training.kubeflow.org/job-role": role,
        }
        body = {
            "metadata": {"name": name, "labels": labels},
            "spec": {"nodeName": "node-1", "containers": [{"name": role, "image": "image"}]},
        }
        try:
            self.core.create_namespaced_pod(self.namespace, body)
        except client.ApiException as error:
            assert error.status == 409
        began = "2026-01-02T10:00:00Z"
        states: dict[str, Any] = {
            "running": ("Running", {"running": {"startedAt": began}}),
            "waiting": ("Pending", {"waiting": {"reason": "ContainerCreating"}}),
            "succeeded": ("Succeeded", {"terminated": {"exitCode": 0, "startedAt": began}}),
            "failed": ("Failed", {"terminated": {"exitCode": 1, "startedAt": began}}),
        }
        phase, container = states[state]
        status = {
            "name": role,
            "state": container,
            "restartCount": restarts,
            "ready": state == "running",
            "image": "image",
            "imageID": "image",
        }
        self.core.patch_namespaced_pod_status(
            name, self.namespace, {"status": {"phase": phase, "containerStatuses": [status]}}
        )
        return self.cluster.kubelet.log(self.namespace, name)

    def jobs(self) -> list[str]:
        listed = self.custom.list_namespaced_custom_object("kubeflow.org", "v2beta1", self.namespace, "mpijobs")
        return sorted(item["metadata"]["name"] for item in listed["items"])


def stamp() -> str:
    return f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        cluster.stop()
