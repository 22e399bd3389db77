"""An API server that is just large enough for tests without Kubernetes: objects in memory, and watches."""

from __future__ import annotations

import itertools
import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from kubernetes import client

Json = dict[str, Any]
JOBS = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"
REPORTS = "/apis/mpi.opendatahub.io/v1alpha1/namespaces/default/jobreports"
PODS = "/api/v1/namespaces/default/pods"
TRAIN_JOBS = "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs"
RUNTIMES = "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes"


class SmallAPI:
    """Serves objects by their paths.

    Attributes:
        objects: By path.
        logs: The log of each pod.
        requests: What was asked for: methods and paths.
        fails: What a request is answered with instead: a code and an object; None answers it.
        arrives: Whether a request that is answered with something else is carried out all the same.
        headers: Further headers of such an answer.
        delay: How long each change takes, in seconds.
    """

    def __init__(self) -> None:
        self.objects: dict[str, Json] = {}
        self.logs: dict[str, bytes] = {}
        self.requests: list[tuple[str, str]] = []
        self.fails: Callable[[str, str], tuple[int, Json] | None] = lambda method, path: None
        self.arrives = False
        self.headers: dict[str, str] = {}
        self.delay = 0.0
        # Paths whose next answer is not sent to its end, and the addresses of the clients' connections.
        self.stalls: set[str] = set()
        self.connections: set[Any] = set()
        self.changed = threading.Condition()
        self.versions = itertools.count(1)
        self.news: list[tuple[str, str, Json]] = []
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def serve(self) -> None:
                api.serve(self)

            do_GET = do_POST = do_DELETE = do_PATCH = serve  # noqa: N815

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def configuration(self) -> client.Configuration:
        return client.Configuration(host=f"http://127.0.0.1:{self.server.server_address[1]}")

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def put(self, path: str, body: Json) -> Json:
        """Create or change an object."""
        with self.changed:
            number = str(next(self.versions))
            now = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"
            meta = {"uid": f"uid-{number}", "creationTimestamp": now, **body["metadata"], "resourceVersion": number}
            path = f"{path}/{meta['name']}"
            self.objects[path] = {**body, "metadata": {"namespace": "default", **meta}}
            self.news.append(("MODIFIED", path, self.objects[path]))
            self.changed.notify_all()
            return self.objects[path]

    def remove(self, path: str) -> Json:
        """Delete an object."""
        with self.changed:
            item = self.objects.pop(path)
            item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(next(self.versions))}}
            self.news.append(("DELETED", path, item))
            self.changed.notify_all()
            return item

    def report(self, job: Any, phase: str, **status: Any) -> None:
        """Write the report of a job."""
        meta = job.manifest["metadata"]
        if phase in ("Succeeded", "Failed"):
            status.setdefault("completionTime", "2026-01-02T10:00:00Z")
        name = f"{meta['name']}-{meta['uid']}"
        labels = {"mpi.opendatahub.io/job-name": meta["name"], "mpi.opendatahub.io/job-kind": job.kind}
        ref = {"apiVersion": job.manifest["apiVersion"], "kind": job.kind, "name": meta["name"], "uid": meta["uid"]}
        reports = REPORTS.replace("/default/", f"/{meta['namespace']}/")
        known = self.objects.get(f"{reports}/{name}")
        uid = {"uid": known["metadata"]["uid"]} if known else {}
        self.put(
            reports,
            {
                "apiVersion": "mpi.opendatahub.io/v1alpha1",
                "kind": "JobReport",
                "metadata": {"name": name, "namespace": meta["namespace"], "labels": labels, **uid},
                "spec": {"jobRef": ref},
                "status": {"phase": phase, **status},
            },
        )

    def pod(self, job: Any, name: str, lines: list[str], running: bool = False) -> None:
        """Make a pod of a job, with its log: a second between lines."""
        role = "launcher" if "launcher" in name else "worker"
        state = {"running": {}} if running else {"terminated": {"exitCode": 0, "startedAt": "2026-01-02T10:00:00Z"}}
        labels = {
            "training.kubeflow.org/operator-name": "mpi-operator",
            "training.kubeflow.org/job-name": job.name,
            "training.kubeflow.org/job-role": role,
        }
        if job.kind == "TrainJob":
            labels = {
                "jobset.sigs.k8s.io/jobset-name": job.name,
                "jobset.sigs.k8s.io/replicatedjob-name": "launcher" if role == "launcher" else "node",
                "batch.kubernetes.io/job-completion-index": name.rpartition("-")[2],
            }
        self.logs[name] = "".join(
            f"2026-01-02T{10 + number // 3600:02}:{number // 60 % 60:02}:{number % 60:02}.000000000Z {line}\n"
            for number, line in enumerate(lines)
        ).encode()
        self.put(
            PODS,
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "labels": labels},
                "spec": {"containers": [{"name": role}]},
                "status": {
                    "phase": "Running" if running else "Succeeded",
                    "containerStatuses": [{"name": role, "state": state, "restartCount": 0}],
                },
            },
        )

    def serve(self, handler: BaseHTTPRequestHandler) -> None:
        url = urllib.parse.urlsplit(handler.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        size = int(handler.headers.get("content-length") or 0)
        body = json.loads(handler.rfile.read(size)) if size else {}
        self.requests.append((handler.command, url.path))
        self.connections.add(handler.client_address)
        if url.path in self.stalls:
            self.stalls.discard(url.path)
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
            handler.wfile.write(b"x")
            time.sleep(20)
            return None
        failure = self.fails(handler.command, url.path)
        if failure is not None:
            if self.arrives:
                self.put(url.path, body)
            return answer(handler, *failure, self.headers)
        if handler.command != "GET":
            time.sleep(self.delay)
        if handler.command == "POST":
            name = body["metadata"]["name"]
            if f"{url.path}/{name}" in self.objects:
                kind = url.path.rpartition("/")[2]
                status = {"reason": "AlreadyExists", "message": f'{kind} "{name}" already exists'}
                return answer(handler, 409, {**status, "details": {"name": name}})
            return answer(handler, 201, self.put(url.path, body))
        if url.path.endswith("/log"):
            return answer(handler, 200, self.logs[url.path.split("/")[-2]])
        if query.get("watch"):
            return self.watch(handler, url.path, query)
        item = self.objects.get(url.path)
        name = url.path.rpartition("/")[2]
        if item is not None and handler.command == "DELETE":
            item = self.remove(url.path)
        if item is not None:
            return answer(handler, 200, item)
        if name.endswith("s") and url.path.count("/") in (4, 6, 5):
            items = [item for path, item in self.objects.items() if self.is_meant(path, item, url.path, query)]
            version = str(next(self.versions))
            return answer(handler, 200, {"metadata": {"resourceVersion": version}, "items": items})
        return answer(handler, 404, {"message": f'"{name}" not found', "details": {"name": name}})

    def is_meant(self, path: str, item: Json, folder: str, query: dict[str, str]) -> bool:
        wanted = dict(each.split("=", 1) for each in query.get("labelSelector", "").split(",") if each)
        labels = item["metadata"].get("labels") or {}
        return path.rpartition("/")[0] == folder and all(labels.get(name) == value for name, value in wanted.items())

    def watch(self, handler: BaseHTTPRequestHandler, path: str, query: dict[str, str]) -> None:
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        since, at = int(query["resourceVersion"]), 0
        end = time.monotonic() + 60
        try:
            while time.monotonic() < end:
                with self.changed:
                    if at == len(self.news):
                        self.changed.wait(0.2)
                    news, at = self.news[at:], len(self.news)
                for kind, place, item in news:
                    if int(item["metadata"]["resourceVersion"]) > since and self.is_meant(place, item, path, query):
                        data = json.dumps({"type": kind, "object": item}).encode() + b"\n"
                        handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
                handler.wfile.flush()
            handler.wfile.write(b"0\r\n\r\n")
        except OSError:
            return


def answer(
    handler: BaseHTTPRequestHandler, code: int, body: Json | bytes, headers: Mapping[str, str] | None = None
) -> None:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(code)
    handler.send_header("Content-Length", str(len(data)))
    for name, value in (headers or {}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(data)
