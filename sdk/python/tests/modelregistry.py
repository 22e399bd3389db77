"""A real Model Registry with its database, for tests, and a proxy like the one in front of it in OpenShift AI."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from servers import free_port, wait_until


class Registry:
    """Model Registry and MariaDB as processes. With PostgreSQL, Model Registry 0.3.0 fails to find versions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "data").mkdir()
        (folder / "init.sql").write_text("CREATE DATABASE registry CHARACTER SET utf8mb4;\n")
        self.database = subprocess.Popen(
            [
                os.environ["MARIADB"],
                "--no-defaults",
                "--user=root",  # whoever else runs the tests, it runs as that user
                f"--datadir={folder}/data",
                f"--socket={folder}/socket",
                f"--pid-file={folder}/pid",
                f"--init-file={folder}/init.sql",
                "--skip-networking",
                "--skip-grant-tables",
            ],
            stderr=(folder / "mariadb.log").open("wb"),
        )
        wait_until((folder / "socket").exists, f"MariaDB has started; see {folder}/mariadb.log")
        self.server, self.url = start(folder, folder / "socket")
        wait_until(lambda: get(f"{self.url}/readyz/health") is not None, f"Model Registry is ready; see {folder}")

    def stop(self) -> None:
        for process in (self.server, self.database):
            process.terminate()
            process.wait()

    def get(self, path: str, **query: str) -> Any:
        """What the REST API returns, or None."""
        text = get(f"{self.url}/api/model_registry/v1alpha3/{path}?{urllib.parse.urlencode(query)}")
        return None if text is None else json.loads(text)

    def versions(self, model: str) -> list[dict[str, Any]]:
        """The versions of a model, each with its artifacts; without such a model none."""
        found = self.get("registered_model", name=model)
        if found is None or found["name"] != model:
            return []
        versions = self.get(f"registered_models/{found['id']}/versions", pageSize="100")["items"]
        return [
            {**version, "artifacts": self.get(f"model_versions/{version['id']}/artifacts")["items"]}
            for version in sorted(versions, key=lambda version: int(version["id"]))
        ]


def start(folder: Path, socket: Path) -> tuple[subprocess.Popen[bytes], str]:
    """Start Model Registry with a database."""
    port = free_port()
    process = subprocess.Popen(
        [
            os.environ["MODEL_REGISTRY"],
            "proxy",
            "--hostname=127.0.0.1",
            f"--port={port}",
            f"--embedmd-database-dsn=root@unix({socket})/registry?charset=utf8mb4",
        ],
        stderr=(folder / "model-registry.log").open("wb"),
        env={"HOME": str(folder)},
    )
    url = f"http://127.0.0.1:{port}"
    wait_until(lambda: responds(url), f"Model Registry listens; see {folder}/model-registry.log")
    return process, url


def responds(url: str) -> bool:
    """Whether a server returns anything."""
    try:
        urllib.request.urlopen(url).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def get(url: str) -> bytes | None:
    """What a server returns, or None."""
    try:
        with urllib.request.urlopen(url) as answer:
            return bytes(answer.read())
    except OSError:
        return None


class Gate:
    """Forwards what has the right token, as kube-rbac-proxy does in OpenShift AI. It can fail requests."""

    def __init__(self, registry: Registry, token: str) -> None:
        self.tokens: set[str | None] = set()
        self.fails = ""  # the end of a path of which requests to create objects fail
        gate, host = self, urllib.parse.urlsplit(registry.url).netloc

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                gate.tokens.add(self.headers["Authorization"])
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                if self.headers["Authorization"] != f"Bearer {token}":
                    return self.answer(401, b"Unauthorized", "text/plain")
                if gate.fails and self.command == "POST" and self.path.endswith(gate.fails):
                    return self.answer(502, b"Bad Gateway", "text/plain")
                server = http.client.HTTPConnection(host)
                server.request(self.command, self.path, body, {"Content-Type": "application/json"})
                answer = server.getresponse()
                self.answer(answer.status, answer.read(), answer.headers["Content-Type"])
                server.close()

            do_POST = do_GET  # noqa: N815

            def answer(self, code: int, body: bytes, kind: str) -> None:
                self.send_response(code)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()
