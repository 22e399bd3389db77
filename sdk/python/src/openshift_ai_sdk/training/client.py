"""Run MPI jobs: the synchronous face.

Generated from aio.py by tools/generate_sync.py; do not edit it. Change aio.py, and run `make sdk-generate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, overload

from openshift_ai_sdk.training import (
    _advice,
    _changes,
    _clone,
    _create,
    _credentials,
    _curves,
    _delete,
    _events,
    _links,
    _logs,
    _manifest,
    _profile,
    _program,
    _runtime_changes,
    _runtime_tests,
    _runtimes,
    _suspend,
    _templates,
    _trainer_runtime,
    _training_history,
    _usage,
    _usage_history,
    _validate,
    _wait,
    _written,
)
from openshift_ai_sdk.training._apiserver import Api
from openshift_ai_sdk.training._cluster import Cluster
from openshift_ai_sdk.training._command import Command, LaunchOptions
from openshift_ai_sdk.training._curves import TrainingCurve
from openshift_ai_sdk.training._driver import Json
from openshift_ai_sdk.training._driver_blocking import BlockingDriver, iterate, run, shared
from openshift_ai_sdk.training._duration import Duration
from openshift_ai_sdk.training._explain import Explanation, explain
from openshift_ai_sdk.training._job_ref import Found, JobRef
from openshift_ai_sdk.training._job_spec import JobSpec
from openshift_ai_sdk.training._logs import RankSet, Since
from openshift_ai_sdk.training._many import raise_all
from openshift_ai_sdk.training._model_registry import Model, register
from openshift_ai_sdk.training._notify import FindingCallback, Observer, PhaseCallback
from openshift_ai_sdk.training._phases import parse_phases, problems_of_phases
from openshift_ai_sdk.training._plot import Plot, curves_of, plot
from openshift_ai_sdk.training._profile import Profile
from openshift_ai_sdk.training._progress_bar import bar, wait_with_bar
from openshift_ai_sdk.training._retry import RetryPolicy
from openshift_ai_sdk.training._runtime_settings import KEEP, Keep, RuntimeSettings
from openshift_ai_sdk.training._runtime_tests import RuntimeTest
from openshift_ai_sdk.training._runtimes import Runtime
from openshift_ai_sdk.training._status import FOLLOW, jobs_as_html, not_created_as_html, status_as_html
from openshift_ai_sdk.training._templates import Template
from openshift_ai_sdk.training._usage_history import UsageHistory
from openshift_ai_sdk.training.errors import (
    InvalidJobError,
    JobBlockedError,
    JobTimeoutError,
    MPIJobFailed,
    NotSupportedError,
    call_of,
)
from openshift_ai_sdk.training.models import (
    Event,
    JobStatus,
    LogLine,
    Logs,
    Phase,
    PodUsage,
    ResourceRequirements,
    TrainingHistory,
)

if TYPE_CHECKING:
    from model_registry import ModelRegistry
    from model_registry.types import RegisteredModel
    from typing_extensions import Self

__all__ = ["JobList", "MPIJob", "TrainingClient", "train"]

Resources = ResourceRequirements | Mapping[str, int | float | str]
T = TypeVar("T")


class TrainingClient:
    """Works with the training jobs of a cluster.

    Credentials come from the given kubeconfig or configuration, else from ``$KUBECONFIG``, ``~/.kube/config`` (where
    ``oc login`` writes them) or the service account of the notebook's pod. They are read again when they expire.

    Args:
        namespace: The namespace of jobs for which no other is named; by default that of the kubeconfig's context, or
            of the notebook's pod.
        kubeconfig: Path of a kubeconfig file.
        context: The context in it; by default the current one.
        configuration: A ``kubernetes.client.Configuration`` to use as it is.
        retry: How long and how often to try while the API server is away.

    Raises:
        InvalidJobError: An argument is wrong.
        NotLoggedInError: No credentials were found.

    Example:
        >>> with TrainingClient(namespace="my-project") as client:
        ...     job = client.get_job("train")
    """

    def __init__(
        self,
        namespace: str | None = None,
        *,
        kubeconfig: str | PathLike[str] | None = None,
        context: str | None = None,
        configuration: object = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        _validate.check(_validate.of_client(namespace, kubeconfig, context))
        credentials = _credentials.load(kubeconfig, context, configuration)
        self._driver = BlockingDriver(credentials)
        self._cluster = Cluster(Api(self._driver, retry or RetryPolicy(), credentials.host), credentials.namespace)
        self._cluster.namespace = namespace or credentials.namespace

    @property
    def namespace(self) -> str:
        """The namespace of jobs for which no other is named."""
        return self._cluster.namespace

    @property
    def host(self) -> str:
        """The address of the API server."""
        return self._cluster.api.host

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        run(self._driver.close())

    def create_job(
        self,
        name: str,
        *,
        job_kind: str = "MPIJob",
        num_workers: int = 1,
        resources_per_worker: Resources | None = None,
        container_image: str | None = None,
        command: Command | None = None,
        env: Mapping[str, str] | None = None,
        num_procs_per_worker: int | None = None,
        runtime: str | None = None,
        namespace: str | None = None,
        dry_run: Literal["client", "server"] | None = None,
        after: MPIJob | Sequence[MPIJob] = (),
        **options: Any,
    ) -> MPIJob:
        """Create a job.

        Args:
            name: The job's name: lower-case letters, digits and ``-``.
            job_kind: ``MPIJob``, or ``TrainJob``, which needs a runtime.
            num_workers: How many pods run ranks, 1 or more.
            resources_per_worker: What each worker asks for, such as
                ``{"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"}``.
            container_image: The image of launcher and workers.
            command: What each rank runs. mpirun is put before it unless it starts ranks by itself.
            env: Variables of every rank.
            num_procs_per_worker: How many ranks a worker takes; by default one for each GPU, or one.
            runtime: A runtime of Kubeflow Trainer; the job is a TrainJob then.
            namespace: By default that of the client.
            dry_run: ``client`` only checks and builds the job, ``server`` also asks the cluster.
            after: Jobs that must succeed first; this waits for them.
            options: Further options of MPIJob, such as ``queue`` or ``deadline``.

        Raises:
            InvalidJobError: The job is invalid; nothing was sent.
            JobRefusedError: The cluster rejects the job.
            JobExistsError: A job of that name exists.

        Example:
            >>> job = client.create_job(
            ...     name="protein-folding",
            ...     job_kind="MPIJob",
            ...     num_workers=32,
            ...     resources_per_worker={"cpu": "16", "memory": "64Gi", "nvidia.com/gpu": "2"},
            ...     container_image="quay.io/me/molecular-dynamics",
            ...     command=["mpirun", "-np", "64", "python", "simulate.py"],
            ...     env={"SIMULATION_STEPS": "10000000"},
            ... )
        """
        problems = [
            *_validate.of_options(job_kind, runtime, options),
            *_validate.of_dry_run(dry_run),
            *_validate.of_jobs(after, MPIJob, "after"),
        ]
        try:
            job = MPIJob(
                name,
                namespace,
                workers=num_workers,
                image=container_image,
                command=command,
                resources=resources_per_worker,
                env=env,
                slots_per_worker=num_procs_per_worker,
                runtime=runtime,
                client=self,
                **{option: value for option, value in options.items() if option in _validate.OPTIONS},
            )
        except InvalidJobError as error:
            problems += map(_validate.in_create_job, error.problems)
        _validate.check(problems)
        return job.create(dry_run=dry_run, after=after)

    def create_jobs(self, jobs: Sequence[MPIJob]) -> JobList:
        """Create many jobs, several at a time.

        Raises:
            TrainingError: Jobs were not created; the text names them, and the others were created. If all failed for
                the same reason, the class is that of the reason, such as JobExistsError.

        Example:
            >>> jobs = [MPIJob(f"seed-{n}", image=image, command=f"train.py --seed {n}") for n in range(10)]
            >>> client.create_jobs(jobs)
        """
        _validate.check(_validate.of_jobs(jobs, MPIJob, "jobs"))
        jobs = [jobs] if isinstance(jobs, MPIJob) else jobs
        manifests = [(job._manifest_in(job._namespace or self.namespace), job._launch) for job in jobs]
        created = run(_create.create_all(self._cluster, manifests))
        for job, object_ in zip(jobs, created, strict=True):
            if isinstance(object_, dict):
                job._adopt(self, Found(JobRef(job.kind, *_placed(object_)), object_, None, self.host))
        raise_all([job._ref for job in jobs], created, "created")
        return JobList(jobs)

    def get_job(self, name: str, namespace: str | None = None, *, job_kind: str | None = None) -> MPIJob:
        """Return a job by its name. A deleted job is found as long as its report is kept.

        Raises:
            JobNotFoundError: There is no such job; the text suggests similar names.

        Example:
            >>> job = client.get_job("train")
        """
        _validate.check(_validate.of_name(name), _validate.of_namespace(namespace), _validate.of_kind(job_kind))
        return MPIJob._found(self, run(self._cluster.find(name, namespace or self.namespace, job_kind)))

    def list_jobs(
        self,
        namespace: str | None = None,
        *,
        all_namespaces: bool = False,
        labels: str = "",
        job_kind: str | None = None,
        phase: Phase | str | None = None,
        deleted: bool = False,
    ) -> JobList:
        """Return jobs, by namespace and name.

        Args:
            namespace: By default that of the client.
            all_namespaces: Return the jobs of all namespaces.
            labels: A label selector, such as ``team=a``.
            job_kind: ``MPIJob`` or ``TrainJob``; by default both.
            phase: Return jobs in this phase only.
            deleted: Also return deleted jobs whose reports are kept.

        Example:
            >>> [job.name for job in client.list_jobs(phase="Running")]
            ['train']
        """
        where = None if all_namespaces else namespace or self.namespace
        _validate.check(
            _validate.of_namespace(namespace),
            _validate.of_selector(labels),
            _validate.of_kind(job_kind),
            problems_of_phases([phase], "phase") if phase is not None else (),
        )
        wanted = parse_phases([phase])[0] if phase is not None else None
        found = run(self._cluster.list(where, labels, job_kind, wanted, deleted))
        return JobList([MPIJob._found(self, each) for each in found])

    def update_job(
        self, name: str, new_name: str | None = None, *, namespace: str | None = None, **changes: Any
    ) -> MPIJob:
        """Create a changed copy of a job. A running job cannot be changed.

        Args:
            name: The job to start from.
            new_name: By default the name with the next free number.
            namespace: By default that of the client.
            changes: See ``MPIJob.clone``; the names of ``create_job`` are taken, too, such as ``container_image``.

        Example:
            >>> client.update_job("train", workers=8, memory="64Gi")
        """
        changes, problems = _validate.changes_as_in_create_job(changes)
        _validate.check(
            problems,
            _validate.of_name(name),
            _validate.of_new_name(new_name),
            _validate.of_namespace(namespace),
            _validate.of_dry_run(changes.get("dry_run")),
            _changes.problems_of({field: value for field, value in changes.items() if field != "dry_run"}),
        )
        job = self.get_job(name, namespace)
        return job.clone(new_name, **changes)

    def wait_for_job(
        self,
        name: str,
        namespace: str | None = None,
        *,
        until: str | Sequence[str] = "Succeeded",
        timeout: Duration | None = None,
        on_phase: PhaseCallback | None = None,
        on_finding: FindingCallback | None = None,
        webhook: str | None = None,
        progress: bool = False,
        raise_if_blocked: bool = False,
    ) -> JobStatus:
        """Wait until a job has succeeded, or has reached another phase; see ``MPIJob.wait_for_completion``.

        Example:
            >>> status = client.wait_for_job("train", timeout="4h")
        """
        _validate.check(
            _validate.of_name(name),
            _validate.of_namespace(namespace),
            _validate.of_waiting(until, timeout, on_phase, on_finding, webhook),
        )
        job = self.get_job(name, namespace)
        return job.wait_for_phase(
            until,
            timeout=timeout,
            on_phase=on_phase,
            on_finding=on_finding,
            webhook=webhook,
            progress=progress,
            raise_if_blocked=raise_if_blocked,
        )

    def wait_for_jobs(
        self,
        jobs: Sequence[MPIJob],
        *,
        timeout: Duration | None = None,
        on_phase: PhaseCallback | None = None,
        on_finding: FindingCallback | None = None,
        webhook: str | None = None,
    ) -> list[JobStatus]:
        """Wait until jobs have ended, whether they succeed or fail, and return their statuses in the order of the jobs.

        One connection serves all jobs of a namespace.

        Raises:
            JobTimeoutError: The timeout has passed before all jobs have ended; the error's ``statuses`` has what is
                known of all of them.

        Example:
            >>> failed = [status.name for status in client.wait_for_jobs(jobs) if status.is_failed]
        """
        _validate.check(
            _validate.of_jobs(jobs, MPIJob, "jobs"),
            _validate.of_waiting(timeout=timeout, on_phase=on_phase, on_finding=on_finding, webhook=webhook),
        )
        jobs = [jobs] if isinstance(jobs, MPIJob) else jobs
        observer = Observer(on_phase=on_phase, on_finding=on_finding, webhook=webhook)
        refs = [job._ref for job in jobs]
        ended = {}
        for status in iterate(_wait.wait_all(self._cluster, refs, _validate.seconds(timeout), observer)):
            ended[status.kind, status.namespace, status.name] = status
        return [ended[job._ref.kind, job._ref.namespace, job._ref.name] for job in jobs]

    def get_job_logs(
        self,
        name: str,
        namespace: str | None = None,
        *,
        ranks: RankSet | None = None,
        worker_index: int | None = None,
        all_pods: bool = False,
        since: Since | None = None,
        until: Since | None = None,
        level: str | None = None,
        tail: int | None = None,
        pattern: str | None = None,
    ) -> Logs:
        """Return lines of a job's logs; see ``MPIJob.get_logs``.

        Example:
            >>> print(client.get_job_logs("train", ranks="0"))
        """
        _validate.check(
            _validate.of_name(name),
            _validate.of_namespace(namespace),
            _logs.problems_of(
                ranks=ranks,
                worker_index=worker_index,
                all_pods=all_pods,
                since=since,
                until=until,
                level=level,
                tail=tail,
                pattern=pattern,
            ),
        )
        job = self.get_job(name, namespace)
        return job.get_logs(
            ranks=ranks,
            worker_index=worker_index,
            all_pods=all_pods,
            since=since,
            until=until,
            level=level,
            tail=tail,
            pattern=pattern,
        )

    def delete_job(self, name: str, namespace: str | None = None, *, job_kind: str | None = None) -> None:
        """Delete a job and all that belongs to it. Its report is retained.

        Example:
            >>> client.delete_job("train")
        """
        job = self.get_job(name, namespace, job_kind=job_kind)
        job.delete()

    def delete_jobs(self, jobs: Sequence[MPIJob]) -> None:
        """Delete many jobs, several at a time.

        Raises:
            TrainingError: Jobs were not deleted; the text names them, and the others were deleted.

        Example:
            >>> client.delete_jobs(client.list_jobs(phase="Failed"))
        """
        _validate.check(_validate.of_jobs(jobs, MPIJob, "jobs"))
        jobs = [jobs] if isinstance(jobs, MPIJob) else jobs
        refs = [job._ref for job in jobs]
        raise_all(refs, run(_delete.delete_all(self._cluster, refs)), "deleted")

    def save_template(
        self, name: str, job: MPIJob, *, description: str = "", replace: bool = False, namespace: str | None = None
    ) -> Template:
        """Keep a job as a template, for all users who can read the namespace's ConfigMaps.

        Texts in the job may have parameters: ``${NAME}``, or ``${NAME:-default}``.

        Example:
            >>> job = MPIJob("train", image="${IMAGE:-quay.io/me/train}", command="train.py")
            >>> client.save_template("train", job, description="Trains the model")
        """
        _validate.check(
            _validate.of_name(name),
            _validate.of_jobs([job], MPIJob, "job"),
            _validate.of_namespace(namespace),
        )
        where = namespace or self.namespace
        manifest = job._manifest_in(where)
        if job._launch and job._launch != LaunchOptions():
            manifest = run(_trainer_runtime.with_runtime(self._cluster, manifest, job._launch))
        return run(_templates.save(self._cluster, where, name, manifest, description, replace))

    def list_templates(self, namespace: str | None = None) -> list[Template]:
        """Return the templates of a namespace, by name.

        Example:
            >>> [template.name for template in client.list_templates()]
            ['train']
        """
        _validate.check(_validate.of_namespace(namespace))
        return run(_templates.all_of(self._cluster, namespace or self.namespace))

    def create_from_template(
        self,
        template: str,
        name: str | None = None,
        *,
        namespace: str | None = None,
        changes: Mapping[str, object] | None = None,
        **parameters: object,
    ) -> MPIJob:
        """Create a job from a template.

        Args:
            template: The template's name.
            name: The job's name; by default that in the template.
            namespace: By default that of the client.
            changes: Further changes; see ``MPIJob.clone``.
            parameters: Values of the template's parameters.

        Example:
            >>> client.create_from_template("train", "train-7", IMAGE="quay.io/me/train:7")
        """
        _validate.check(
            _validate.of_name(template, "template"),
            _validate.of_new_name(name, "name"),
            _validate.of_namespace(namespace),
            _changes.problems_of(changes or {}),
        )
        where = namespace or self.namespace
        manifest = _templates.fill(run(_templates.get(self._cluster, where, template)), parameters)
        manifest["metadata"]["name"] = name or manifest["metadata"]["name"]
        manifest["metadata"]["namespace"] = where
        _validate.changes(manifest, changes or {})
        return MPIJob._of_manifest(manifest, self).create()

    def delete_template(self, name: str, namespace: str | None = None) -> None:
        """Delete a template.

        Example:
            >>> client.delete_template("train")
        """
        _validate.check(_validate.of_name(name), _validate.of_namespace(namespace))
        run(_templates.delete(self._cluster, namespace or self.namespace, name))

    def list_runtimes(self, namespace: str | None = None) -> list[Runtime]:
        """Return the runtimes of a namespace and of the cluster, by name.

        Those of the cluster are left out if you may not list them.

        Example:
            >>> [runtime.name for runtime in client.list_runtimes() if runtime.implementation]
            ['mpi-openmpi']
        """
        _validate.check(_validate.of_namespace(namespace))
        return run(_runtimes.all_of(self._cluster, namespace or self.namespace))

    def get_runtime(self, name: str, namespace: str | None = None) -> Runtime:
        """Return a runtime with its image, MPI and limits: of the namespace, else of the cluster.

        Example:
            >>> (client.get_runtime("mpi-openmpi")).max_workers
            '100'

        Raises:
            JobNotFoundError: There is no such runtime.
        """
        _validate.check(_validate.of_name(name), _validate.of_namespace(namespace))
        return run(_runtimes.get(self._cluster, namespace or self.namespace, name))

    def create_runtime(
        self,
        name: str,
        *,
        implementation: str | None = None,
        from_runtime: str | None = None,
        image: str | None = None,
        slots: int | None = None,
        max_workers: int | Keep | None = KEEP,
        min_workers: int | Keep | None = KEEP,
        max_gpus: int | Keep | None = KEEP,
        gang_timeout: Duration | Keep | None = KEEP,
        priority_class: str | Keep | None = KEEP,
        required_node_labels: Mapping[str, str] | Keep | None = KEEP,
        allow_egress: str | Keep | None = KEEP,
        agent_image: str | None = None,
        run_as_user: int | None = None,
        cluster: bool = False,
        namespace: str | None = None,
        dry_run: Literal["client", "server"] | None = None,
    ) -> Runtime:
        """Create an MPI runtime, as ``kubectl odh mpijob runtimes create`` and the dashboard do.

        It has the settings of the runtime to start from, except for those that are given. A runtime that comes with
        this package need not be in the cluster: ``shipped/mpi-openmpi``, ``mpi-openmpi5``, ``mpi-mpich``,
        ``mpi-intel``, ``mpi-horovod`` and ``mpi-deepspeed``.

        Args:
            name: The runtime's name.
            implementation: Start from the shipped runtime of this MPI: ``OpenMPI`` (the default), ``Intel`` or
                ``MPICH``. Nobody publishes an image with Intel MPI, so that it requires an image.
            from_runtime: Start from this runtime: ``shipped/NAME``, or one of the namespace or the cluster. If both
                have one of this name, use ``trainingruntime/NAME`` or ``clustertrainingruntime/NAME``.
            image: The image of the workers and the launcher.
            slots: Ranks per worker, unless the job sets it.
            max_workers: The maximum number of workers of a job; None for no limit.
            min_workers: The minimum number of workers of a job; None for none.
            max_gpus: The maximum number of GPUs of a worker; None for no limit.
            gang_timeout: After how long an attempt to place all pods together ends, unless the job sets it, in seconds
                or such as ``"10m"``; None for the default.
            priority_class: The PriorityClass of the pods; None for the cluster's default.
            required_node_labels: Labels of the nodes that the pods run on, which a job cannot change; None for any
                node.
            allow_egress: Destinations that the pods may connect to besides their own job, separated by commas, such as
                ``"192.0.2.7:2049,namespace/minio:9000"``; None for none. The cluster checks them.
            agent_image: The image of the agent, which starts ranks; by default, with a shipped runtime, that of the
                installed operator if you may read its Deployment.
            run_as_user: The number of the user that the pods run as; by default, with a shipped runtime, 1000, unless
                OpenShift assigns one.
            cluster: Create a ClusterTrainingRuntime, for all namespaces, and no TrainingRuntime of the namespace.
            namespace: By default that of the client.
            dry_run: ``client`` only checks and returns the runtime, ``server`` also asks the cluster.

        Raises:
            InvalidJobError: An argument is wrong; nothing was created.
            JobNotFoundError: The runtime to start from does not exist.
            JobExistsError: A runtime of that name exists.
            PermissionDeniedError: You may not create runtimes; the text names the role.

        Example:
            >>> runtime = client.create_runtime("mine", image="quay.io/me/train:1", max_workers=16)
            >>> runtime.max_workers
            '16'
        """
        settings = RuntimeSettings(
            image,
            slots,
            max_workers,
            min_workers,
            max_gpus,
            gang_timeout,
            priority_class,
            required_node_labels,
            allow_egress,
            agent_image,
            run_as_user,
        )
        new = _runtime_changes.NewRuntime(name, cluster, implementation, from_runtime, settings)
        _validate.check(
            new.problems(),
            _runtime_changes.problems_of_scope(None, cluster),
            _validate.of_namespace(namespace),
            _validate.of_dry_run(dry_run),
        )
        return run(_runtime_changes.create(self._cluster, namespace or self.namespace, new, dry_run))

    def update_runtime(
        self,
        name: str,
        *,
        image: str | None = None,
        slots: int | None = None,
        max_workers: int | Keep | None = KEEP,
        min_workers: int | Keep | None = KEEP,
        max_gpus: int | Keep | None = KEEP,
        gang_timeout: Duration | Keep | None = KEEP,
        priority_class: str | Keep | None = KEEP,
        required_node_labels: Mapping[str, str] | Keep | None = KEEP,
        allow_egress: str | Keep | None = KEEP,
        agent_image: str | None = None,
        run_as_user: int | None = None,
        cluster: bool = False,
        namespace: str | None = None,
    ) -> Runtime:
        """Change settings of an MPI runtime. Those that are not given stay as they are, and jobs that run continue.

        Args:
            name: The runtime's name.
            image: Replaces the image of the workers in all containers that have it.
            slots: Ranks per worker, unless the job sets it.
            max_workers: The maximum number of workers of a job; None for no limit.
            min_workers: The minimum number of workers of a job; None for none.
            max_gpus: The maximum number of GPUs of a worker; None for no limit.
            gang_timeout: After how long an attempt to place all pods together ends, unless the job sets it, in seconds
                or such as ``"10m"``; None for the default.
            priority_class: The PriorityClass of the pods; None for the cluster's default.
            required_node_labels: Labels of the nodes that the pods run on, which a job cannot change; None for any
                node.
            allow_egress: Destinations that the pods may connect to besides their own job, separated by commas, such as
                ``"192.0.2.7:2049,namespace/minio:9000"``; None for none. The cluster checks them.
            agent_image: Replaces the image of the agent, which starts ranks.
            run_as_user: The number of the user that the pods run as.
            cluster: Change the ClusterTrainingRuntime of this name, for all namespaces.
            namespace: The namespace of a TrainingRuntime; by default that of the client.

        Raises:
            InvalidJobError: An argument is wrong, or it is no MPI runtime; nothing was changed.
            JobNotFoundError: There is no such runtime.
            PermissionDeniedError: You may not change runtimes; the text names the role.

        Example:
            >>> client.update_runtime("mine", image="quay.io/me/train:2", max_gpus=None)
        """
        settings = RuntimeSettings(
            image,
            slots,
            max_workers,
            min_workers,
            max_gpus,
            gang_timeout,
            priority_class,
            required_node_labels,
            allow_egress,
            agent_image,
            run_as_user,
        )
        _validate.check(
            _validate.of_name(name),
            _runtime_changes.problems_of_scope(namespace, cluster),
            _validate.of_namespace(namespace),
            settings.problems() or settings.problems_of_nothing(),
        )
        where = namespace or self.namespace
        return run(_runtime_changes.update(self._cluster, where, name, cluster, settings))

    def delete_runtime(self, name: str, *, cluster: bool = False, namespace: str | None = None) -> None:
        """Delete a runtime. Jobs of it that run continue; those that wait or are suspended cannot start any more.

        Kubeflow Trainer before v2.2 keeps runtimes that jobs use until these are gone, about which this warns.

        Args:
            name: The runtime's name.
            cluster: Delete the ClusterTrainingRuntime of this name, which all namespaces share.
            namespace: The namespace of a TrainingRuntime; by default that of the client.

        Raises:
            JobNotFoundError: There is no such runtime.
            PermissionDeniedError: You may not delete runtimes; the text names the role.

        Example:
            >>> client.delete_runtime("mine")
        """
        _validate.check(
            _validate.of_name(name),
            _runtime_changes.problems_of_scope(namespace, cluster),
            _validate.of_namespace(namespace),
        )
        run(_runtime_changes.delete(self._cluster, namespace or self.namespace, name, cluster))

    def test_runtime(
        self,
        name: str,
        *,
        image: str | None = None,
        cpu: int | float | str | None = None,
        memory: str | None = None,
        gpu: int | str | None = None,
        gpu_resource: str = "nvidia.com/gpu",
        queue: str | None = None,
        timeout: Duration = "5m",
        keep: bool = False,
        wait: bool = True,
        namespace: str | None = None,
    ) -> RuntimeTest:
        """Test a runtime with a small job, as ``kubectl odh mpijob runtimes test`` does.

        The operator runs a launcher and two workers, and measures the latency and bandwidth of MPI messages between
        them, for which the image needs a shared library of MPI. The job is deleted then, and so is the RuntimeTest if
        it has passed.

        Args:
            name: The runtime, of the namespace or the cluster. If both have one of this name, use
                ``trainingruntime/NAME`` or ``clustertrainingruntime/NAME``.
            image: Replaces the runtime's image.
            cpu: CPU cores of each pod. One of the three replaces all resources of the runtime, such as GPUs.
            memory: Memory of each pod.
            gpu: GPUs of each pod.
            gpu_resource: The name of a GPU in the cluster.
            queue: The queue (Kueue's LocalQueue) to wait in.
            timeout: How long the test may run, from ``"10s"`` to ``"1h"``.
            keep: Keep the RuntimeTest when it has passed.
            wait: Wait for the end of the test. Otherwise it is returned as it begins, and kept for a day after its end.
            namespace: Where the test runs; by default in that of the client.

        Raises:
            InvalidJobError: An argument is wrong; nothing was started.
            JobNotFoundError: There is no such runtime.
            TrainingError: The operator has not ended the test a minute after its timeout.

        Example:
            >>> test = client.test_runtime("mine")
            >>> print(test.passed, test.message)
            >>> print([check.message for check in test.checks if check.result == "Fail"])
        """
        request = _runtime_tests.TestRequest(name, image, cpu, memory, gpu, gpu_resource, queue, timeout, keep, wait)
        _validate.check(request.problems(), _validate.of_namespace(namespace))
        return run(_runtime_tests.run_test(self._cluster, namespace or self.namespace, request))


def default_client() -> TrainingClient:
    """Return the client of jobs for which no other is named."""
    return shared(TrainingClient)


class MPIJob:
    """A training job: an MPIJob, or with a runtime a TrainJob.

    Args:
        name: The job's name: lower-case letters, digits and ``-``.
        namespace: By default that of the client.
        workers: How many pods run ranks, 1 or more.
        image: The image of launcher and workers; with a runtime it replaces the runtime's.
        command: What each rank runs, as text or as a list of words. mpirun is put before it, with as many ranks as
            there are slots, unless the command starts ranks by itself.
        resources: What each worker asks for: ResourceRequirements, or a mapping as Kubernetes writes it.
        volume_mounts: Where all pods mount volumes. A name that no volume has means the PersistentVolumeClaim of that
            name.
        env: Variables of every rank.
        node_selector: Labels that the nodes must have.
        slots_per_worker: How many ranks a worker takes; by default one for each GPU, or one.
        mpi_implementation: The MPI in the image: ``OpenMPI`` (the default), ``Intel`` or ``MPICH``.
        mpi_flags: More flags of the mpirun that is put before the command, such as ``"--bind-to core"``. A runtime must
            be one of MPI.
        runtime: A runtime of Kubeflow Trainer; the job is a TrainJob then. ``connections``, ``topology``, ``rdma``,
            ``profile``, ``gang_timeout`` and ``retries`` require an MPI runtime of the operator.
        queue: The queue (Kueue's LocalQueue) to wait in.
        priority: The PriorityClass of the pods; with a runtime and a queue Kueue's WorkloadPriorityClass. With a
            runtime and without a queue, it requires an MPI runtime of the operator.
        connections: Data connections (Secrets) whose keys every rank has as variables.
        volumes: Volumes of all pods, as Kubernetes writes them.
        launcher_resources: What the launcher asks for; by default 100m of a CPU, and 128 MiB of memory with a limit of
            1 GiB. A TrainJob has no field for it.
        shm: The size of shared memory (/dev/shm) of each pod, such as ``"8Gi"``.
        output_dir: A claim in which the job has a folder for results, and the path of that folder in all pods, such as
            ``"results:/results"``. Ranks have the path as the variable OUTPUT_DIR.
        tolerations: Taints that all pods tolerate, such as ``"nvidia.com/gpu"`` or ``"pool=fast:NoSchedule"``, or
            tolerations as Kubernetes writes them.
        topology: The key of a node label, such as ``"topology.kubernetes.io/zone"``: all pods run on nodes with the
            same value; with ``"prefer:"`` before it, if possible.
        image_pull_secrets: Secrets with the credentials of the image's registry.
        service_account: The ServiceAccount of the pods.
        workdir: The working folder of the programs; by default the image's. A runtime must be one of MPI.
        labels: Labels of the job.
        annotations: Annotations of the job.
        run_as_user: The number of the user that the pods run as; by default the image's own, or the runtime's. With a
            runtime it requires Kubeflow Trainer v2.2.
        retries: How often the job is tried again when it fails; by default never, or as a runtime that is not the
            operator's says. A retry replaces workers that failed; with a runtime, all pods. An attempt that Kubernetes
            ended, to preempt a pod or drain a node, does not count.
        deadline: The longest time that the job may take, in seconds or such as ``"4h"``.
        ttl: The time from the job's end until it is deleted, in seconds or such as ``"24h"``; by default it is kept.
            Its report is always kept.
        rdma: What happens if no node offers the RDMA that the job requests: ``"optional"``, the default, runs the job
            over TCP, and ``"required"`` waits for it.
        profile: Count and time the calls of MPI in each rank.
        wait_for_quota: Wait if the quotas of the namespace have no room for the job now; by default it is refused.
        gang_timeout: Schedule all pods together, and give up an attempt after this time, in seconds or such as
            ``"10m"``; by default the cluster's or the runtime's. With a runtime and without a queue, a job of which no
            pod has a node waits without a limit; set a deadline to end it.
        grace_period: The time that programs have to end after SIGTERM, in seconds or such as ``"2m"``; by default 30 s.
            With a runtime it requires Kubeflow Trainer v2.2.
        suspend: Create the job suspended.
        mlflow_tracking_uri: Where ranks log to MLflow: the variable MLFLOW_TRACKING_URI.
        client: The cluster; by default that of the notebook.
        unknown: Other names are an error, which suggests the right one.

    Raises:
        InvalidJobError: The job is invalid. The error lists all problems, and nothing was sent.

    Example:
        >>> job = MPIJob(
        ...     "train",
        ...     workers=4,
        ...     image="quay.io/me/train",
        ...     command="python train.py --epochs 10",
        ...     resources=ResourceRequirements(cpu=8, memory="64Gi", gpu=1),
        ... )
        >>> job.create()
        >>> job.wait_for_completion(timeout="4h")
        >>> print(job.get_logs())
    """

    def __init__(
        self,
        name: str,
        namespace: str | None = None,
        workers: int = 1,
        image: str | None = None,
        command: Command | None = None,
        resources: Resources | None = None,
        volume_mounts: Sequence[Mapping[str, Any]] = (),
        env: Mapping[str, str] | None = None,
        node_selector: Mapping[str, str] | None = None,
        *,
        slots_per_worker: int | None = None,
        mpi_implementation: str | None = None,
        mpi_flags: Command = (),
        runtime: str | None = None,
        queue: str | None = None,
        priority: str | None = None,
        connections: Sequence[str] = (),
        volumes: Sequence[Mapping[str, Any]] = (),
        launcher_resources: Resources | None = None,
        shm: str | int | None = None,
        output_dir: str | None = None,
        tolerations: Sequence[str | Mapping[str, Any]] = (),
        topology: str | None = None,
        image_pull_secrets: Sequence[str] = (),
        service_account: str | None = None,
        workdir: str | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        run_as_user: int | None = None,
        retries: int | None = None,
        deadline: Duration | None = None,
        ttl: Duration | None = None,
        rdma: str | None = None,
        profile: bool = False,
        wait_for_quota: bool = False,
        gang_timeout: Duration | None = None,
        grace_period: Duration | None = None,
        suspend: bool = False,
        mlflow_tracking_uri: str | None = None,
        client: TrainingClient | None = None,
        **unknown: NoReturn,
    ) -> None:
        spec = JobSpec(
            name=name,
            workers=workers,
            image=image,
            command=command,
            resources=resources,
            env=env or {},
            slots_per_worker=slots_per_worker,
            mpi_implementation=mpi_implementation,
            mpi_flags=mpi_flags,
            runtime=runtime,
            queue=queue,
            priority=priority,
            connections=connections,
            volumes=volumes,
            volume_mounts=volume_mounts,
            node_selector=node_selector or {},
            launcher_resources=launcher_resources,
            shm=shm,
            output_dir=output_dir,
            tolerations=tolerations,
            topology=topology,
            image_pull_secrets=image_pull_secrets,
            service_account=service_account,
            workdir=workdir,
            labels=labels or {},
            annotations=annotations or {},
            run_as_user=run_as_user,
            retries=retries,
            deadline=deadline,
            ttl=ttl,
            rdma=rdma,
            profile=profile,
            wait_for_quota=wait_for_quota,
            gang_timeout=gang_timeout,
            grace_period=grace_period,
            suspend=suspend,
            mlflow_tracking_uri=mlflow_tracking_uri,
        )
        _validate.check(_validate.of_unknown(unknown), spec.problems_in(namespace) if unknown else ())
        self._init(_manifest.manifest_of(spec, namespace), client, spec.launch_options())

    def _init(self, manifest: Json, client: TrainingClient | None, launch: LaunchOptions | None = None) -> None:
        self._manifest = manifest
        # What mpirun gets once the runtime of a TrainJob is known.
        self._launch = launch
        self._namespace: str | None = manifest["metadata"].get("namespace")
        self._given = client
        self._uid = ""
        self._known: JobStatus | Found | None = None
        # Whether secrets are masked in the manifest, which is then that in the report of a deleted job.
        self._masked = False

    @classmethod
    def _of_manifest(cls, manifest: Json, client: TrainingClient | None) -> Self:
        job = cls.__new__(cls)
        job._init(manifest, client)
        return job

    @classmethod
    def _found(cls, client: TrainingClient, found: Found) -> Self:
        ref = found.ref
        written = found.object or _written.written_in(found.report)[0]
        manifest = written or {
            "apiVersion": ref.resource.api_version,
            "kind": ref.kind,
            "metadata": {"name": ref.name, "namespace": ref.namespace},
        }
        job = cls._of_manifest(manifest, client)
        job._adopt(client, found)
        job._masked = found.object is None
        return job

    def _adopt(self, client: TrainingClient, found: Found) -> None:
        """Update this object from the cluster."""
        self._given = client
        self._manifest = found.object or self._manifest
        self._namespace, self._uid, self._known = found.ref.namespace, found.ref.uid, found

    @property
    def _seen(self) -> JobStatus | None:
        """The status that was read last. Of a job in a list it is decoded when it is first needed."""
        if isinstance(self._known, Found):
            self._known = self._known.status
        return self._known

    def _manifest_in(self, namespace: str) -> Json:
        manifest = self._manifest
        if self._masked:
            _validate.check(_written.masked_in(manifest))
        if "uid" in manifest["metadata"]:
            manifest = _written.suspended_in_queue_as(_changes.written_again(manifest), manifest)
        return {**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}}

    @property
    def _client(self) -> TrainingClient:
        if self._given is None:
            self._given = default_client()
        return self._given

    @property
    def _cluster(self) -> Cluster:
        return self._client._cluster

    @property
    def _ref(self) -> JobRef:
        return JobRef(self.kind, self.namespace, self.name, self._uid)

    @property
    def name(self) -> str:
        """The job's name."""
        return str(self._manifest["metadata"]["name"])

    @property
    def namespace(self) -> str:
        """The job's namespace."""
        return self._namespace or self._client.namespace

    @property
    def kind(self) -> str:
        """MPIJob or TrainJob."""
        return str(self._manifest["kind"])

    @property
    def manifest(self) -> Json:
        """The job's object: as it will be sent, or as the cluster had it when it was read last."""
        return self._manifest

    def __repr__(self) -> str:
        state = f": {self._seen}" if self._seen else ""
        if self._seen and self._seen.phase is None:
            state += f". {FOLLOW}"
        return f"<{self.kind} {self._namespace or '-'}/{self.name}{state}>"

    def _repr_html_(self) -> str:
        if self._seen is None:
            cluster = self._given.host if self._given else ""
            status = JobStatus(kind=self.kind, name=self.name, namespace=self._namespace or "", cluster=cluster)
            return not_created_as_html(status)
        job = self._manifest if "uid" in self._manifest["metadata"] else None
        calls = [call_of(_changes.of_remedy(remedy, job)) for remedy in self._seen.remedies]
        return status_as_html(self._seen, calls)

    @classmethod
    def get(cls, name: str, namespace: str | None = None, *, client: TrainingClient | None = None) -> Self:
        """Return a job that exists.

        Raises:
            JobNotFoundError: There is no such job; the text suggests similar names.

        Example:
            >>> job = MPIJob.get("train")
        """
        _validate.check(_validate.of_name(name), _validate.of_namespace(namespace))
        used = client or default_client()
        return cls._found(used, run(used._cluster.find(name, namespace or used.namespace)))

    @classmethod
    def from_yaml(cls, source: str | Path, *, client: TrainingClient | None = None) -> Self:
        """Return the job in a YAML text or file.

        Args:
            source: The text, or the path of a file.
            client: The cluster; by default that of the notebook.

        Raises:
            InvalidJobError: It is no job, or has fields that do not exist.

        Example:
            >>> job = MPIJob.from_yaml(Path("job.yaml"))
        """
        return cls._of_manifest(_validate.document(source), client)

    def to_yaml(self) -> str:
        """Return the job as YAML, as ``oc apply -f`` takes it.

        The command of a TrainJob that is not created yet is shown without mpirun and its flags: the runtime determines
        whether it is needed.

        Example:
            >>> print(job.to_yaml())
        """
        return _validate.to_yaml(self._manifest)

    def create(
        self,
        *,
        dry_run: Literal["client", "server"] | None = None,
        after: MPIJob | Sequence[MPIJob] = (),
    ) -> Self:
        """Create the job, and return it.

        In a notebook, a Python shell or a terminal this prints the command that describes the job, and the URL of its
        page in the dashboard if that is known.

        Args:
            dry_run: ``client`` sends nothing, ``server`` only asks the cluster whether it would accept the job.
            after: Jobs that must succeed first; this waits for them.

        Raises:
            JobRefusedError: The cluster rejects the job; the error has all reasons.
            JobExistsError: A job of that name exists.
            MPIJobFailed: A job that must succeed first has failed.

        Example:
            >>> job.create()
            >>> MPIJob("evaluate", image=image, command="evaluate.py").create(after=job)
        """
        _validate.check(_validate.of_dry_run(dry_run), _validate.of_jobs(after, MPIJob, "after"))
        if dry_run == "client":
            return self
        before = [after] if isinstance(after, MPIJob) else after
        refs = [job._ref for job in before]
        manifest = self._manifest_in(self.namespace)
        object_ = run(_create.create(self._cluster, manifest, dry_run == "server", refs, self._launch))
        if dry_run is None:
            self._adopt(self._client, Found(JobRef(self.kind, *_placed(object_)), object_, None, self._client.host))
            self._announce()
        return self

    def get_advice(self) -> list[str]:
        """Return what your earlier jobs of the same program suggest for this one, a sentence each.

        Memory and CPU that the job would not use or does not have enough of, GPUs that were idle, and workers that made
        it no faster. The job need not exist yet. Only jobs of the namespace that succeeded count, with the same image
        (of any tag) and program, and at least three of them: with fewer, nothing is suggested. ``kubectl odh mpijob
        create`` and the dashboard show the same.

        Example:
            >>> job = MPIJob("train", image=image, command="train.py", resources={"memory": "64Gi"})
            >>> for line in job.get_advice():
            ...     print(line)
            Memory: 5 earlier jobs like this one used at most 9 GiB in a pod; this one asks for 64 GiB. 11Gi is enough.
        """
        return run(_advice.advice(self._cluster, self._manifest, self.namespace))

    def _announce(self) -> None:
        """Print where a job is shown that was created, if a user reads it."""
        if _links.is_interactive():
            print(_links.announcement(self._ref, run(_links.dashboard(self._cluster))))

    def get_dashboard_url(self) -> str | None:
        """Return the URL of the job's page in the dashboard; None if the dashboard is unknown.

        The dashboard's URL is that of the entry ``mpijob-dashboard`` in OpenShift's application menu, or
        ``$MPIJOB_DASHBOARD_URL``.

        Example:
            >>> job.get_dashboard_url()
            'https://mpijob-dashboard.apps.example.com/projects/my-project/mpijob/train'
        """
        url = run(_links.dashboard(self._cluster))
        return _links.page(url, self._ref) if url else None

    def get_status(self) -> JobStatus:
        """Return the job's status, with causes and remedies.

        Raises:
            JobNotFoundError: There is no such job.

        Example:
            >>> status = job.get_status()
            >>> print(status)
            Running: epoch 3, loss 0.21
            >>> status == "Running"
            True
        """
        self._known = status = run(self._cluster.status(self._ref))
        return status

    def wait_for_completion(
        self,
        timeout: Duration | None = None,
        *,
        on_phase: PhaseCallback | None = None,
        on_finding: FindingCallback | None = None,
        webhook: str | None = None,
        progress: bool = False,
        raise_if_blocked: bool = False,
    ) -> JobStatus:
        """Wait until the job has succeeded, and return its status. Ctrl-C ends the waiting and never the job.

        The status is equal to ``"Succeeded"``; a job that fails raises.

        Args:
            timeout: Give up after this time, in seconds or such as ``"4h"``; by default never. 0 reads the status once.
            on_phase: Called with the status when the phase changes.
            on_finding: Called with the status and a finding when it is new: a warning, or why the job cannot go on or
                has failed. Each code is reported once, and again if its severity changes.
            webhook: URL that gets the status as JSON when the phase changes or a finding is new.
            progress: Show a progress bar of the training, as its log reports it (needs the extra ``notebook``).
            raise_if_blocked: Raise if the job cannot go on without a change, such as a job whose image cannot be
                pulled; by default this is a warning, and waiting continues.

        Raises:
            JobBlockedError: The job cannot go on, and ``raise_if_blocked`` is set.
            MPIJobFailed: The job has failed; the error has the cause, the place and remedies.
            JobNotFoundError: The job was deleted before the operator recorded anything about it.
            JobTimeoutError: The timeout has passed; the job keeps running.

        Example:
            >>> status = job.wait_for_completion(timeout="4h")
        """
        return self.wait_for_phase(
            "Succeeded",
            timeout=timeout,
            on_phase=on_phase,
            on_finding=on_finding,
            webhook=webhook,
            progress=progress,
            raise_if_blocked=raise_if_blocked,
        )

    def wait_for_phase(
        self,
        until: str | Sequence[str],
        *,
        timeout: Duration | None = None,
        on_phase: PhaseCallback | None = None,
        on_finding: FindingCallback | None = None,
        webhook: str | None = None,
        progress: bool = False,
        raise_if_blocked: bool = False,
    ) -> JobStatus:
        """Wait until the job has reached a phase. A phase that it has passed counts.

        Args:
            until: A phase or several, such as ``"Running"``.
            timeout: Give up after this time, in seconds or such as ``"10m"``; by default never.
            on_phase: Called with the status when the phase changes.
            on_finding: Called with the status and a finding when it is new: a warning, or why the job cannot go on or
                has failed. Each code is reported once, and again if its severity changes.
            webhook: URL that gets the status as JSON when the phase changes or a finding is new.
            progress: Show a progress bar of the training, as its log reports it (needs the extra ``notebook``).
            raise_if_blocked: Raise if the job cannot go on without a change, such as a job whose image cannot be
                pulled; by default this is a warning, and waiting continues.

        Raises:
            JobBlockedError: The job cannot go on, and ``raise_if_blocked`` is set.
            MPIJobFailed: The job has failed instead.
            JobNotFoundError: The job was deleted before the operator recorded anything about it.
            JobTimeoutError: The timeout has passed; the job keeps running.

        Example:
            >>> job.wait_for_phase("Running", timeout="10m")
        """
        _validate.check(_validate.of_waiting(until, timeout, on_phase, on_finding, webhook))
        with bar(self.name, progress) as shown:
            observer = Observer(shown.show if shown else None, on_phase, on_finding, webhook, bool(raise_if_blocked))
            try:
                self._known = status = run(
                    wait_with_bar(
                        self._cluster, self._ref, parse_phases(until), _validate.seconds(timeout), observer, shown
                    )
                )
            except (JobBlockedError, JobTimeoutError, MPIJobFailed) as error:
                self._known = error.status
                raise
        return status

    @overload
    def get_logs(
        self,
        *,
        ranks: RankSet | None = None,
        worker_index: int | None = None,
        all_pods: bool = False,
        since: Since | None = None,
        until: Since | None = None,
        level: str | None = None,
        tail: int | None = None,
        pattern: str | None = None,
        follow: Literal[False] = False,
    ) -> Logs: ...

    @overload
    def get_logs(
        self,
        *,
        ranks: RankSet | None = None,
        worker_index: int | None = None,
        all_pods: bool = False,
        since: Since | None = None,
        until: Since | None = None,
        level: str | None = None,
        tail: int | None = None,
        pattern: str | None = None,
        follow: Literal[True],
    ) -> Iterator[LogLine]: ...

    @overload
    def get_logs(
        self,
        *,
        ranks: RankSet | None = None,
        worker_index: int | None = None,
        all_pods: bool = False,
        since: Since | None = None,
        until: Since | None = None,
        level: str | None = None,
        tail: int | None = None,
        pattern: str | None = None,
        follow: bool,
    ) -> Logs | Iterator[LogLine]: ...

    def get_logs(
        self,
        *,
        ranks: RankSet | None = None,
        worker_index: int | None = None,
        all_pods: bool = False,
        since: Since | None = None,
        until: Since | None = None,
        level: str | None = None,
        tail: int | None = None,
        pattern: str | None = None,
        follow: bool = False,
    ) -> Logs | Iterator[LogLine]:
        """Return lines of the job's logs: of the launcher, through which most ranks write, or of some ranks or pods.

        A TrainJob of a runtime without MPI, such as PyTorch's, has no launcher: the lines are those of all workers.

        The rank of a line is known if mpirun tags it (Open MPI: ``--tag-output``, or
        ``--output tag`` with version 5; Intel MPI and MPICH: ``-prepend-rank``). If the
        administrator has a bucket for logs, those of a finished job are read from there, complete, for a day or as long
        as it keeps them; a worker that printed more than 10 MiB itself may lack its first lines. If the certificate of
        that server is not accepted, name a file with its CA in the environment variable ``SSL_CERT_FILE``. Otherwise,
        of pods that are gone, the lines are those that the report of the finished job has kept, with a warning if some
        are missing. Secrets are masked as on the command line.

        Args:
            ranks: Lines of these ranks alone: a number, a list, or text such as ``"0,4-7"``.
            worker_index: Lines of this worker's ranks, from 0. If no line has a tag, all lines of the launcher are
                returned, with a warning.
            all_pods: Lines of the launcher and of all workers.
            since: Lines of the last seconds, or of a time such as ``"10m"``, or a time.
            until: Lines until so many seconds ago, or a time such as ``"10m"`` ago, or a time.
            level: Lines at or above this level: ``"debug"``, ``"info"``, ``"warning"`` or ``"error"``. Indented lines
                have the level of the line before, as in a traceback. Lines without a level are left out.
            tail: Read at most this many last lines of each log.
            pattern: Lines in which this regular expression is found.
            follow: Return an iterator that goes on until the job has ended. No line is lost or repeated, even if
                connections are cut or containers restart.

        Raises:
            InvalidJobError: An argument is wrong.
            TrainingError: With follow, the complete logs of a finished job cannot be read to their end. Without it,
                what its pods and its report have is returned instead, with a warning.

        Example:
            >>> print(job.get_logs(ranks="0", tail=20))
            >>> for line in job.get_logs(follow=True):
            ...     print(line.rank, line.text)
        """
        problems = _logs.problems_of(
            ranks=ranks,
            worker_index=worker_index,
            all_pods=all_pods,
            since=since,
            until=until,
            level=level,
            tail=tail,
            pattern=pattern,
            follow=follow,
        )
        _validate.check(problems)
        selection = _logs.select(
            self._driver_now(),
            ranks=ranks,
            worker_index=worker_index,
            all_pods=all_pods,
            since=since,
            until=until,
            level=level,
            tail=tail,
            pattern=pattern,
        )
        found = run(self._cluster.find_same(self._ref))
        reader = _logs.Reader(self._cluster, found, selection)
        if follow:
            return iterate(reader.follow())
        return Logs(run(reader.read()))

    def _driver_now(self) -> datetime:
        return self._cluster.api.driver.now()

    def stream_events(self, *, follow: bool = True) -> Iterator[Event]:
        """Yield the past and the future events of the job until it has ended, each once and in order.

        Args:
            follow: With False only the past events.

        Example:
            >>> for event in job.stream_events():
            ...     print(event)
            09:30:00 Created: MPIJob train with 4 workers.
        """
        return iterate(_events.events(self._cluster, self._ref, follow))

    def get_training_history(self) -> TrainingHistory:
        """Return the epochs, losses and accuracies in the job's log, one entry for each line that has any.

        Lines are read as the operator reads them: JSON, ``name=value``, and what Keras, PyTorch, Lightning, Horovod and
        Hugging Face's Trainer print. Of lines with a rank only those of rank 0 count. Of a job without a launcher the
        log of worker 0 is read.

        Example:
            >>> history = job.get_training_history()
            >>> history[-1].loss
            0.21
        """
        found = run(self._cluster.find_same(self._ref))
        reader = _logs.Reader(self._cluster, found, _logs.Selection(main=True))
        return _training_history.history(run(reader.read()))

    def get_usage(self) -> list[PodUsage]:
        """Return the CPUs and the memory that each pod of the job uses at the moment, and requests.

        Raises:
            NotSupportedError: The cluster has no metrics server, or it does not answer.

        Example:
            >>> [(pod.pod, pod.cpu) for pod in job.get_usage()]
            [('train-launcher-x7k2p', 0.02), ('train-worker-0', 7.9), ('train-worker-1', 7.8)]
        """
        return run(_usage.usage(self._cluster, self._ref))

    def get_usage_history(self) -> UsageHistory | None:
        """Return what the job used over time, as its report keeps it; None if no agent has reported it yet.

        The agents in the job's pods measure it: no metrics server is needed. It is kept when the job is deleted.

        Raises:
            JobNotFoundError: There is no such job.

        Example:
            >>> usage = job.get_usage_history()
            >>> usage["CPU"].mean, usage["CPU"].limit
            (3800, 4000)
        """
        return _usage_history.history(self.get_status())

    def get_profile(self) -> Profile | None:
        """Return where the time of the job's ranks goes, as its report keeps it; None if it has no profile.

        The job asks for it with ``profile=True``. It is reported a minute after the ranks have started, then every few
        minutes and at the end, and is kept when the job is deleted.

        Raises:
            JobNotFoundError: There is no such job.

        Example:
            >>> profile = job.get_profile()
            >>> profile.calls[0].name, profile.late_rank
            ('MPI_Allreduce', 1)
        """
        return _profile.profile(self.get_status())

    def get_training_curves(self) -> dict[str, TrainingCurve]:
        """Return the figures that the program printed over time, by their names, as the job's report keeps them.

        They are kept when the job is deleted. Use `openshift_ai_sdk.training.report` in the program to report them.

        Raises:
            JobNotFoundError: There is no such job.

        Example:
            >>> curves = job.get_training_curves()
            >>> curves["loss"].latest
            0.41
        """
        return _curves.curves(self.get_status())

    def plot(self) -> Plot:
        """Plot the figures of the program, such as loss and accuracy, and the CPUs, memory and GPUs that the job used.

        They are those of the job's report, which is kept when the job is deleted. Without curves in the report, loss
        and accuracy are read from the log. Without a usage in it, the plot shows what the pods use at the moment,
        if the cluster has a metrics server. It needs the extra ``plot``.

        Raises:
            NotSupportedError: matplotlib is not installed.

        Example:
            >>> (job.plot()).save("training.png")
        """
        status = self.get_status()
        usage: UsageHistory | list[PodUsage] | None = _usage_history.history(status)
        if usage is None:
            try:
                usage = self.get_usage()
            except NotSupportedError:
                usage = None
        curves = _curves.curves(status) or curves_of(self.get_training_history())
        return plot(self.name, curves, usage)

    def register_model(
        self,
        name: str,
        *,
        uri: str,
        version: str,
        registry: ModelRegistry | str,
        format_name: str = "",
        format_version: str = "",
        description: str | None = None,
        metadata: Mapping[str, str | int | float | bool] | None = None,
    ) -> RegisteredModel:
        """Register the model that the job has trained in Model Registry, once the job has succeeded.

        The version records the job, its ranks, and the last epoch, loss and accuracy. It needs the extra ``registry``.

        Args:
            name: The name of the registered model, which is created if it does not exist.
            uri: Where the job has stored the model, such as ``s3://models/fraud/1``.
            version: The new version.
            registry: A ``model_registry.ModelRegistry``, or its URL, at which you are logged in with the token of
                the cluster.
            format_name: The format of the files, such as ``onnx``.
            format_version: The format's version.
            description: Describes the version.
            metadata: What else to record with the version: text, numbers, True or False. A whole number of ten digits
                or more is recorded as text, which the registry requires.

        Raises:
            InvalidJobError: An argument is missing or not allowed.
            TrainingError: The job has not succeeded, or the registry rejects the model or does not respond.
            NotSupportedError: model-registry is not installed.

        Example:
            >>> job.register_model("fraud", uri="s3://models/fraud/1", version="1", registry="https://registry")
        """
        model = Model(name, uri, version, (format_name, format_version), description, metadata or {})
        model.check()
        status = self.get_status()
        credentials = self._client._driver.credentials
        return run(self._client._driver.call(lambda: register(registry, credentials, status, model)))

    def explain(self) -> Explanation:
        """Return why the job fails or waits, and the remedies.

        Example:
            >>> print(job.explain())
        """
        found = run(self._cluster.find_same(self._ref))
        self._known = found.status
        return explain(found)

    def suspend(self) -> None:
        """Suspend the job: its pods are deleted, and it can be resumed.

        Example:
            >>> job.suspend()
        """
        run(_suspend.set_suspended(self._cluster, self._ref, True))

    def resume(self) -> None:
        """Resume the suspended job; in a queue it waits for its turn.

        Example:
            >>> job.resume()
        """
        run(_suspend.set_suspended(self._cluster, self._ref, False))

    def cancel(self, *, grace_period: Duration | None = None) -> None:
        """End the job: delete it with its pods. Its report is retained and names the user who deleted it.

        Args:
            grace_period: How long the programs have to end after SIGTERM, in seconds or such as ``"2m"``; by default
                the pods' own grace period, usually 30 s.

        Example:
            >>> job.cancel(grace_period="2m")
        """
        _validate.check(_validate.of_duration(grace_period, "grace_period"))
        run(_delete.cancel(self._cluster, self._ref, _validate.seconds(grace_period)))

    def delete(self, *, wait: bool = False, timeout: Duration | None = None) -> None:
        """Delete the job and all that belongs to it. Its report is retained.

        Args:
            wait: Return when the job is gone.
            timeout: Give up waiting after this time, in seconds or such as ``"1m"``.

        Example:
            >>> job.delete(wait=True)
        """
        _validate.check(_validate.of_duration(timeout))
        run(_delete.delete(self._cluster, self._ref))
        if wait:
            run(_delete.await_deletion(self._cluster, self._ref, _validate.seconds(timeout)))

    def clone(
        self, new_name: str | None = None, *, dry_run: Literal["client", "server"] | None = None, **changes: Any
    ) -> Self:
        """Create a changed copy of the job and return it. A clone is never suspended.

        In a notebook, a Python shell or a terminal this prints the name of the copy, as ``create`` does.

        If the original starts as many ranks as its workers have slots, so does the copy. Other numbers of ranks are
        kept, with a warning if the number of slots has changed. With ``output_dir``, the copy has its own folder for
        results, unless a change names a ``subPath``.

        A deleted job can be cloned while its report is kept. Secrets are masked there: ``env`` or the path of the field
        must set each of them again.

        Args:
            new_name: By default the name with the next free number.
            dry_run: ``client`` only makes the copy, ``server`` also asks the cluster whether it would accept it.
            changes: The arguments of ``MPIJob``; ``cpu``, ``memory`` and ``gpu`` of each worker; or the path of any
                field: ``**{"spec.runPolicy.cleanPodPolicy": "All"}``. ``command`` is that of the launcher, with mpirun.
                Lists and mappings are added to those of the original. None takes a field out, or in a mapping an entry.

        Raises:
            InvalidJobError: A change does not fit the job, or a secret of a deleted job is not set again.
            JobNotFoundError: The job is deleted, and its report does not contain its specification.

        Example:
            >>> again = job.clone(workers=8, memory="64Gi", env={"NCCL_DEBUG": "INFO"})
        """
        _validate.check(_validate.of_new_name(new_name), _validate.of_dry_run(dry_run), _changes.problems_of(changes))
        object_ = run(_clone.clone(self._cluster, self._ref, new_name, changes, dry_run))
        if dry_run is not None:
            return self._of_manifest(object_, self._client)
        ref = JobRef(self.kind, *_placed(object_))
        copy = self._found(self._client, Found(ref, object_, None, self._client.host))
        copy._announce()
        return copy


class JobList(list[MPIJob]):
    """Jobs; a notebook shows them as a table."""

    def _repr_html_(self) -> str:
        return jobs_as_html(
            [job._seen or JobStatus(kind=job.kind, name=job.name, namespace=job._namespace or "") for job in self]
        )


def train(
    func: Callable[..., object],
    arguments: Mapping[str, Any] | None = None,
    *,
    name: str,
    **options: Any,
) -> MPIJob:
    """Run a Python function in every rank of a new job, and return the job.

    The function's source is sent, and nothing around it: it has to import what it uses. The image needs ``python3``.
    Annotations may use anything. A decorator that wraps the function is sent if it is that of an installed package;
    the image needs that package, too.

    Args:
        func: A function that is defined with ``def`` or ``async def``.
        arguments: What it is called with, by name; values that JSON can hold.
        name: The job's name.
        options: Options of MPIJob, such as ``image`` and ``workers``.

    Raises:
        InvalidJobError: The function cannot be sent, or something is wrong with the job; nothing was sent.

    Example:
        >>> def hello(greeting):
        ...     from mpi4py import MPI
        ...
        ...     print(greeting, "from rank", MPI.COMM_WORLD.rank)
        >>> job = train(hello, {"greeting": "Hello"}, name="hello", image="quay.io/me/mpi4py", workers=2)
    """
    return MPIJob(name, command=_program.command_of(func, arguments), **options).create()


def _placed(object_: Json) -> tuple[str, str, str]:
    """Return namespace, name and uid of an object."""
    meta = object_["metadata"]
    return meta["namespace"], meta["name"], meta.get("uid", "")
