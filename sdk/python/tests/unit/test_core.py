"""Parts of the core that need no cluster."""

from __future__ import annotations

import ast
import asyncio
import pickle
import re
import ssl
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path

import kubernetes.client
import pytest

import openshift_ai_sdk.training as sdk
from openshift_ai_sdk.training import (
    APIError,
    Explanation,
    InvalidJobError,
    JobNotFoundError,
    JobRefusedError,
    JobStatus,
    JobTimeoutError,
    LogLine,
    Logs,
    MPIJob,
    MPIJobFailed,
    NotLoggedInError,
    PermissionDeniedError,
    Problem,
    Remedy,
    TLSError,
    TrainingClient,
    TrainingError,
    _changes,
    _clone,
    _interrupt,
    _logs,
    _program,
    _quantity,
    _tls,
)
from openshift_ai_sdk.training._retry import RetryPolicy
from openshift_ai_sdk.training._status import fraction, jobs_as_html, status_as_html

PACKAGE = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "tool", [f"generate_{name}" for name in ("models", "patterns", "runtimes", "sync", "reference", "notebooks")]
)
def test_generated_files_are_up_to_date(tool: str) -> None:
    subprocess.run([sys.executable, PACKAGE / "tools" / f"{tool}.py", "--check"], check=True)


def test_what_is_imported_is_declared() -> None:
    """Packages that are imported outside of extras are dependencies, so that nothing comes by others' chance."""
    imported: set[str] = set()
    for path in (PACKAGE / "src").rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        for_types = [node for node in nodes if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
        unused = {inner for node in for_types for inner in ast.walk(node)}
        for node in nodes:
            if node in unused:
                continue
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module).partition(".")[0])
    project = (PACKAGE / "pyproject.toml").read_text()
    declared = re.search(r"^dependencies = \[(.*?)^\]", project, re.DOTALL | re.MULTILINE)
    extras = re.search(r"optional-dependencies\]\n(.*?)\n\n", project, re.DOTALL)
    assert declared is not None and extras is not None
    own = imported - set(sys.stdlib_module_names) - {"openshift_ai_sdk"}
    of_extras = {name.replace("-", "_") for name in re.findall(r'"([\w-]+)>=', extras[1])} | {"mr_openapi"}
    names = {"pyyaml": "yaml"}
    assert own - of_extras == {names.get(name, name) for name in re.findall(r'"([\w-]+)>=', declared[1])}


def test_importing_needs_neither_the_models_of_pods_nor_asyncio() -> None:
    loaded = "import sys, openshift_ai_sdk.training; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True).stdout.split()
    assert "openshift_ai_sdk.training.client" in modules
    assert not {"openshift_ai_sdk.training._generated.mpijob", "aiohttp", "kubernetes", "tqdm", "matplotlib"} & set(
        modules
    )


@pytest.mark.parametrize(
    ("line", "rank", "text"),
    [
        ("[1,5]<stdout>:text", 5, "text"),
        ("[1,5]<stdout>: text", 5, "text"),
        ("[1,5]<stderr>:    raise", 5, "    raise"),
        ("[1,5]<stderr>:     raise", 5, "    raise"),
        ("[prterun-host-1@1,5]<stderr>: text", 5, "text"),
        ("[5] text", 5, "text"),
        ("[5]", 5, ""),
        ("[rank5]: text", 5, "text"),
        ("[5]text", None, "[5]text"),
        ("[5]: text", None, "[5]: text"),
        ("[a] text", None, "[a] text"),
        ("[+5] text", None, "[+5] text"),
        ("text", None, "text"),
    ],
)
def test_rank_of(line: str, rank: int | None, text: str) -> None:
    assert _logs.rank_of(line) == (rank, text)


def test_resume_skips_what_was_read_and_nothing_else() -> None:
    begin = datetime(2026, 1, 2, 10, 0, 0, tzinfo=timezone.utc)
    times = [begin + timedelta(milliseconds=400 * number // 3) for number in range(60)]
    for cut in range(1, 60):
        resume = _logs.Resume()
        resume.again()
        read = [number for number in range(cut) if resume.is_new(times[number])]
        since = resume.since
        assert since is not None
        resume.again()
        read += [number for number in range(60) if times[number] >= since and resume.is_new(times[number])]
        assert read == list(range(60))


def test_errors_cross_processes() -> None:
    status = JobStatus(kind="MPIJob", name="train", namespace="ns", message="Out of memory.")
    problems = [Problem("workers", "0 is not allowed")]
    raised: list[TrainingError] = [
        MPIJobFailed(status),
        TLSError("not trusted"),
        JobTimeoutError("too late", status),
        InvalidJobError(problems),
        JobRefusedError("refused", problems),
        APIError(409, "Conflict", "again"),
        PermissionDeniedError("no"),
    ]
    for error in raised:
        read = pickle.loads(pickle.dumps(error))
        assert (type(read), str(read), read.__dict__) == (type(error), str(error), error.__dict__)


@pytest.mark.parametrize("text", ["{{: x", "- a", "[]", "", "a: b"])
def test_a_kubeconfig_that_is_none_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(NotLoggedInError, match=r"(?s)no cluster is configured .* log in") as raised:
        TrainingClient(kubeconfig=path)
    assert str(path) in str(raised.value)


def test_a_context_that_does_not_exist_is_told(tmp_path: Path) -> None:
    path = tmp_path / "config"
    contexts = "[{name: dev, context: {cluster: c, user: u}}, {name: stage, context: {cluster: c, user: u}}]"
    rest = "clusters: [{name: c, cluster: {server: 'https://x'}}], users: [{name: u, user: {token: t}}]"
    path.write_text(f"{{apiVersion: v1, kind: Config, current-context: dev, contexts: {contexts}, {rest}}}")
    with pytest.raises(NotLoggedInError) as raised:
        TrainingClient(kubeconfig=path, context="production")
    assert str(raised.value) == f"the kubeconfig {path} has no context 'production'; use one of dev, stage"


def test_a_notebook_prints_little_when_ctrl_c_detaches() -> None:
    with (
        pytest.raises(KeyboardInterrupt) as raised,
        _interrupt.detachable("mpijob/train keeps running", "follow again"),
    ):
        raise KeyboardInterrupt
    assert raised.value._render_traceback_() == ["\x1b[31mKeyboardInterrupt\x1b[39m"]  # type: ignore[attr-defined]


def test_a_remedy_uses_words_where_there_are_any() -> None:
    job = MPIJob("train", "ns", image="quay.io/me/train", command="train.py", workers=2).manifest
    fields = {"spec.mpiReplicaSpecs[Worker].replicas": "1", "spec.runPolicy.backoffLimit": "3"}
    changes = [{"field": field, "value": value} for field, value in fields.items()]
    remedy = Remedy.model_validate({"text": "x", "rerun": True, "changes": changes})
    assert _changes.of_remedy(remedy, job) == {"workers": 1, "spec.runPolicy.backoffLimit": 3}


def test_a_remedy_removes_variables() -> None:
    remedy = Remedy.model_validate({"text": "x", "rerun": True, "changes": [{"field": "env.A", "value": ""}]})
    job = MPIJob("train", "ns", image="quay.io/me/train", command="train.py", env={"A": "1", "B": "2"})
    changes = _changes.of_remedy(remedy, job.manifest)
    assert changes is not None
    assert changes == {"env": {"A": None}}
    changed = job.manifest
    assert not _changes.apply(changed, changes)
    mains = _changes.main_containers(changed, _changes.BOTH_ROLES)
    assert [entry["name"] for main in mains for entry in main["env"]] == ["B", "B"]
    without = MPIJob("train", "ns", image="quay.io/me/train", command="train.py").manifest
    assert _changes.of_remedy(remedy, without) is None, "nothing would change"


def test_a_remedy_changes_the_whole_command() -> None:
    command = "spec.mpiReplicaSpecs[Launcher].template.spec.containers[0].command"
    changes = [{"field": command, "value": '["mpirun", "-np", "8", "train"]'}]
    remedy = Remedy.model_validate({"text": "x", "rerun": True, "changes": changes})
    job = MPIJob("train", "ns", image="quay.io/me/train", command="train.py").manifest
    assert _changes.of_remedy(remedy, job) == {command: ["mpirun", "-np", "8", "train"]}


def test_a_kubeconfig_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", "/nonexistent")
    with pytest.raises(NotLoggedInError, match="there is no file /nonexistent"):
        TrainingClient()


def test_pauses_grow_up_to_a_limit() -> None:
    pauses = RetryPolicy(initial=1, maximum=8).pauses()
    for expected in (1, 2, 4, 8, 8):
        assert next(pauses) == pytest.approx(expected, rel=0.2)


def ssl_error(kind: type[ssl.SSLError], **attributes: object) -> ssl.SSLError:
    error = kind(1, str(attributes.get("reason", "")))
    for name, value in attributes.items():
        setattr(error, name, value)
    return error


CERTIFICATES = {
    "self-signed": (
        {"verify_code": 18, "verify_message": "self-signed certificate"},
        "self-signed certificate; certificate-authority in your kubeconfig must be that of this cluster: log in again, "
        "for example with oc login --certificate-authority=FILE",
    ),
    "expired": (
        {"verify_code": 10, "verify_message": "certificate has expired"},
        "certificate has expired; check the clock of this machine, and ask an administrator of the cluster to renew it",
    ),
    "name": (
        {"verify_code": 62, "verify_message": "Hostname mismatch, certificate is not valid for 'x'."},
        "Hostname mismatch, certificate is not valid for 'x'.; use the name that the certificate is for, as server or "
        "tls-server-name in your kubeconfig",
    ),
}


@pytest.mark.parametrize("name", CERTIFICATES)
def test_a_certificate_that_is_not_accepted_is_explained(name: str) -> None:
    attributes, text = CERTIFICATES[name]
    inner = ssl_error(ssl.SSLCertVerificationError, **attributes)
    # As urllib3 and aiohttp wrap it.
    for error in (inner, OSError(inner), RuntimeError(OSError(inner))):
        found = _tls.lasting(error, "https://x")
        assert isinstance(found, TLSError) and isinstance(found, ConnectionError)
        assert str(found) == f"the certificate of the cluster at https://x is not accepted: {text}"


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("WRONG_VERSION_NUMBER", "does not use TLS"),
        ("TLSV1_ALERT_UNKNOWN_CA", "rejects your client certificate"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "rejects your client certificate"),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", "rejects your client certificate"),
        ("PEM lib", "cannot be read"),
        ("NO_CERTIFICATE_OR_CRL_FOUND", "cannot be read"),
        ("TLSV1_ALERT_INTERNAL_ERROR", None),
        ("UNEXPECTED_EOF_WHILE_READING", None),
        (None, None),
    ],
)
def test_failures_of_tls_that_last_are_told_from_those_that_pass(reason: str | None, text: str | None) -> None:
    found = _tls.lasting(OSError(ssl_error(ssl.SSLError, reason=reason)), "https://x")
    assert found is None if text is None else text in str(found)


@pytest.mark.parametrize("error", [ConnectionResetError(), ssl.SSLEOFError(8, "EOF"), TimeoutError(), ValueError("x")])
def test_other_failures_of_connections_pass(error: Exception) -> None:
    assert _tls.lasting(error, "https://x") is None


def test_a_certificate_file_that_does_not_exist_is_told() -> None:
    with pytest.raises(FileNotFoundError) as missing:
        ssl.create_default_context(cafile="/nonexistent")
    assert "cannot be read" in str(_tls.lasting(missing.value, "https://x"))


@pytest.mark.parametrize("host", ["", "api.example.com:6443", "ftp://x", "https://", "https://a b", None])
def test_an_address_that_is_none_is_told(host: object) -> None:
    configuration = kubernetes.client.Configuration()
    configuration.host = host
    with pytest.raises(NotLoggedInError, match=r"the address of the cluster .* use a URL"):
        TrainingClient(configuration=configuration)


def test_quantities_as_kubernetes_writes_them() -> None:
    given = {"250m": 0.25, "1Ki": 1024, "1e3": 1000, "1.5Gi": 1.5 * 2**30, 4: 4, ".5": 0.5, "2E": 2e18}
    assert {text: _quantity.number(text) for text in given} == given
    for text in ("", "16 GB", "4GB", "1e3Ki", "Gi", None, True, [1]):
        assert _quantity.number(text) is None


@pytest.mark.parametrize(
    ("text", "share"),
    [("0.4", 0.4), ("40%", 0.4), ("40", 0.4), ("4/10", 0.4), ("1", 1), ("x", None), ("1/0", None), (None, None)],
)
def test_progress_as_programs_write_it(text: str | None, share: float | None) -> None:
    assert fraction(text) == share


def test_a_phase_of_a_newer_operator_is_taken() -> None:
    status = JobStatus.model_validate({"kind": "MPIJob", "name": "a", "namespace": "b", "phase": "Paused", "new": 1})
    assert status.phase == "Paused" and str(status) == "Paused"


def test_the_estimate_of_a_waiting_job_is_shown() -> None:
    message = "Expected start: before 2026-11-21 10:30 UTC, by the deadlines of the jobs before it."
    estimate = {"by": "2026-11-21T10:30:00Z", "basis": "Deadlines", "message": message}
    fields = {"kind": "MPIJob", "name": "a", "namespace": "b", "phase": "GangScheduling"}
    status = JobStatus.model_validate({**fields, "scheduling": {"wanted": 4, "position": 2, "estimate": estimate}})
    assert str(status) == f"GangScheduling 0/4 pods placed. {message}"
    assert status.scheduling and status.scheduling.estimate and status.scheduling.estimate.by


def test_the_estimate_of_a_running_job_is_shown() -> None:
    message = "Expected end: 2026-11-21 10:30 to 10:40 UTC, by the average pace so far (45%)."
    estimate = {"by": "2026-11-21T10:40:00Z", "from": "2026-11-21T10:30:00Z", "message": message}
    work = {"first": 0, "firstAt": "2026-11-21T10:00:00Z", "reached": 450_000, "reachedAt": "2026-11-21T10:20:00Z"}
    fields = {"kind": "MPIJob", "name": "a", "namespace": "b", "phase": "Running"}
    status = JobStatus.model_validate({**fields, "endEstimate": {**estimate, **work}})
    assert str(status) == f"Running. {message}"
    assert status.end_estimate and status.end_estimate.by and status.end_estimate.by.minute == 40


def test_html_is_escaped() -> None:
    bad = "<script>alert(1)</script><img src=x onerror=alert(1)>\"'"
    remedy = {"text": bad, "action": bad}
    finding = {"code": bad, "severity": "Error", "summary": bad, "evidence": [bad], "remedies": [remedy]}
    fields = {"kind": bad, "name": bad, "namespace": bad, "phase": bad, "message": bad, "findings": [finding]}
    pods = [{"name": bad, "role": "launcher", "index": 0, "phase": bad, "node": bad, "restarts": 0}]
    failure = {"code": bad, "pod": bad, "exitCode": 1, "logTail": [bad]}
    status = JobStatus.model_validate({**fields, "cluster": bad, "pods": pods, "failure": failure})
    line = LogLine(bad, bad, bad)
    for html in (
        status_as_html(status, [bad]),
        jobs_as_html([status]),
        MPIJobFailed(status, [{bad: bad}])._repr_html_(),
        Explanation(status, [{bad: bad}])._repr_html_(),
        InvalidJobError([Problem(bad, bad)])._repr_html_(),
        JobNotFoundError(bad)._repr_html_(),
        Logs([line])._repr_html_(),
    ):
        assert "<script" not in html and "<img" not in html and "&lt;script&gt;" in html


def test_html_tells_where_a_job_is() -> None:
    status = JobStatus(kind="MPIJob", name="train", namespace="ns", cluster="https://api.example.com:6443")
    other = status.model_copy(update={"namespace": "other"})
    place = " in the namespace <b>ns</b> of https://api.example.com:6443"
    assert place in status_as_html(status)
    assert f"1 job{place}" in jobs_as_html([status])
    both = jobs_as_html([status, other])
    assert "2 jobs of https://api.example.com:6443" in both and "<td" in both and ">other</td>" in both


def test_a_notebook_prints_the_users_lines_and_the_error() -> None:
    with pytest.raises(InvalidJobError) as raised:
        MPIJob("Train_1", workers=0, image="quay.io/me/train", command="train.py")
    printed = "\n".join(raised.value._render_traceback_())
    assert "test_core.py" in printed and "MPIJob(" in printed
    assert "client.py" not in printed and "_manifest.py" not in printed
    assert printed.endswith(f"InvalidJobError\x1b[39m: {raised.value}")
    assert str(raised.value).startswith("2 problems:\n  - name: 'Train_1'")


def test_next_name() -> None:
    assert _clone.next_name("train", []) == "train-2"
    assert _clone.next_name("train-2", ["train-9", "other-11", "train-x"]) == "train-10"


LEARNING_RATE = 0.1


def add(first: int, second: int = 2) -> None:
    import json

    print(json.dumps({"sum": first + second}))


def uses_a_global() -> None:
    print(LEARNING_RATE)


def test_a_function_becomes_a_program_that_runs() -> None:
    program, *arguments = _program.command_of(add, {"first": 40})
    assert program == "python3"
    assert subprocess.run([sys.executable, *arguments], check=True, capture_output=True).stdout == b'{"sum": 42}\n'


@pytest.mark.parametrize(
    ("func", "arguments", "message"),
    [
        (uses_a_global, {}, "func: uses_a_global uses LEARNING_RATE from outside; import or define it in the function"),
        (lambda: None, {}, "is not allowed; use a function that is defined with def"),
        (add, {}, "do not fit add(first: 'int', second: 'int' = 2) -> 'None': missing a required argument: 'first'"),
        (add, {"first": object}, "is not allowed; use what JSON can hold"),
    ],
)
def test_functions_that_cannot_be_sent_are_told(func: object, arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidJobError, match=re.escape(message)):
        _program.command_of(func, arguments)  # type: ignore[arg-type]


def test_everything_public_is_documented_with_an_example() -> None:
    undocumented = []
    for owner in (sdk.TrainingClient, sdk.MPIJob):
        for name, member in vars(owner).items():
            if callable(member) and not name.startswith("_") and "Example:" not in (member.__doc__ or ""):
                undocumented.append(f"{owner.__name__}.{name}")
    assert undocumented == ["TrainingClient.close"]


def test_the_version_is_that_of_the_package() -> None:
    import openshift_ai_sdk

    declared = re.search(r'^version = "(.*)"', (PACKAGE / "pyproject.toml").read_text(), re.MULTILINE)
    assert declared is not None and openshift_ai_sdk.__version__ == sdk.__version__ == declared[1]
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        sdk.nothing  # noqa: B018


def test_a_cancelled_call_prints_little_in_a_notebook() -> None:
    _driver_asyncio = pytest.importorskip("openshift_ai_sdk.training._driver_asyncio")

    async def call(caught: list[BaseException]) -> None:
        try:
            await _driver_asyncio.run(asyncio.sleep(60))
        except asyncio.CancelledError as error:
            caught.append(error)

    async def cancelled() -> BaseException:
        caught: list[BaseException] = []
        task = asyncio.ensure_future(call(caught))
        await asyncio.sleep(0)
        task.cancel()
        await task
        return caught[0]

    async def timed_out() -> None:
        await asyncio.wait_for(_driver_asyncio.run(asyncio.sleep(60)), 0.01)

    error = asyncio.run(cancelled())
    # IPython asks the error how to print it.
    printed = error._render_traceback_()  # type: ignore[attr-defined]
    assert type(error) is asyncio.CancelledError and len(printed) < 8 and "CancelledError" in printed[-1]
    with pytest.raises(asyncio.TimeoutError):
        asyncio.run(timed_out())
