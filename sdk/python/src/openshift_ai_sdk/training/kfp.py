"""A component for pipelines (KFP v2) that runs an MPIJob and waits for it. It needs the extra ``kfp``.

KFP reads annotations as objects, so that this module has no ``from __future__ import annotations``.
"""

from collections.abc import Sequence
from typing import NamedTuple

from openshift_ai_sdk.training.errors import NotSupportedError

try:
    from kfp import dsl
except ImportError as error:
    raise NotSupportedError("pipelines need kfp: pip install 'openshift-ai-sdk[kfp]'") from error

__all__ = ["mpijob_component", "run_mpijob"]


def run_mpijob(
    name: str,
    image: str,
    command: str,
    workers: int = 1,
    cpu: str = "",
    memory: str = "",
    gpu: int = 0,
    env: dict = {},  # type: ignore[type-arg]  # noqa: B006 - KFP reads the annotations and defaults
    runtime: str = "",
    queue: str = "",
    namespace: str = "",
    timeout: str = "",
    slots: int = 0,
    connections: list = [],  # type: ignore[type-arg]  # noqa: B006
    volumes: list = [],  # type: ignore[type-arg]  # noqa: B006
    volume_mounts: list = [],  # type: ignore[type-arg]  # noqa: B006
    retries: int = -1,
    deadline: str = "",
    priority: str = "",
    run_as_user: int = 0,
    shm: str = "",
    output_dir: str = "",
    node_selector: dict = {},  # type: ignore[type-arg]  # noqa: B006
    tolerations: list = [],  # type: ignore[type-arg]  # noqa: B006
    mpi_implementation: str = "",
    mpi_flags: str = "",
    workdir: str = "",
    gpu_resource: str = "nvidia.com/gpu",
    launcher_cpu: str = "",
    launcher_memory: str = "",
    image_pull_secrets: list = [],  # type: ignore[type-arg]  # noqa: B006
    service_account: str = "",
    topology: str = "",
    rdma: str = "",
    gang_timeout: str = "",
    wait_for_quota: bool = False,
    grace_period: str = "",
    ttl: str = "",
    profile: bool = False,
    labels: dict = {},  # type: ignore[type-arg]  # noqa: B006
    annotations: dict = {},  # type: ignore[type-arg]  # noqa: B006
    mlflow_tracking_uri: str = "",
) -> NamedTuple("Outputs", [("job", str), ("accuracy", float), ("loss", float)]):  # type: ignore[valid-type]
    """Run an MPIJob, or with a runtime a TrainJob, and wait until it has succeeded.

    Args:
        name: The job's name; in a pipeline that runs more than once it must differ in each run.
        image: The image of launcher and workers; with a runtime it may be empty.
        command: What each rank runs.
        workers: How many pods run ranks.
        cpu: Cores of each worker, such as ``4``; empty requests none.
        memory: Memory of each worker, such as ``16Gi``; empty requests none.
        gpu: GPUs of each worker.
        env: Variables of every rank.
        runtime: A runtime of Kubeflow Trainer.
        queue: The queue to wait in.
        namespace: By default that of the pipeline.
        timeout: Give up after this time, such as ``4h``; empty waits without a limit.
        slots: How many ranks each worker runs; 0 is one for each GPU, or 1.
        connections: Names of data connections, whose keys every rank has as variables.
        volumes: Volumes of the pods, as in Kubernetes, such as
            ``{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}``.
        volume_mounts: Where they are mounted, such as ``{"name": "data", "mountPath": "/data"}``.
        retries: How often the job is tried again when it fails; -1 is never, or with a runtime the runtime's number.
        deadline: Stop the job when it has run for this time, such as ``4h``; empty is no limit.
        priority: The PriorityClass of the pods; with a runtime and a queue Kueue's WorkloadPriorityClass.
        run_as_user: The user that the pods run as; 0 is that of the image or the project.
        shm: Size of shared memory of each pod, such as ``8Gi``; empty is that of the node, often 64 MiB.
        output_dir: The claim in which the job has a folder for results and its path, such as ``results:/results``;
            every rank has the path in OUTPUT_DIR.
        node_selector: Labels that the nodes of all pods must have, such as ``{"gpu": "a100"}``.
        tolerations: Taints that all pods tolerate, such as ``nvidia.com/gpu``.
        mpi_implementation: The MPI in the image: ``OpenMPI``, ``Intel`` or ``MPICH``; empty is OpenMPI. A runtime
            determines it.
        mpi_flags: More flags of the mpirun that is added to the command, such as ``--bind-to core``.
        workdir: The working folder of the programs; empty is that of the image.
        gpu_resource: The name of a GPU in the cluster.
        launcher_cpu: Cores of the launcher; empty is ``100m``. A TrainJob has none of its own.
        launcher_memory: Memory of the launcher; empty requests 128Mi and limits it to 1Gi, or is 1Gi if launcher_cpu
            is set.
        image_pull_secrets: Secrets with the credentials of the image's registry.
        service_account: The ServiceAccount of the pods.
        topology: A label of nodes by which all pods run in one domain, such as ``topology.kubernetes.io/zone``; with
            the prefix ``prefer:``, if possible.
        rdma: ``required`` waits for the RDMA that the pods request; empty or ``optional`` uses TCP without it.
        gang_timeout: Places all pods together, and gives up an attempt after this time, such as ``10m``.
        wait_for_quota: Whether the job waits if the quotas of the namespace have no room for it now.
        grace_period: The time that programs have to end after SIGTERM, such as ``2m``; empty is 30 seconds.
        ttl: The time from the end of the job until it is deleted, such as ``24h``; empty keeps it.
        profile: Whether the calls of MPI are counted and timed in each rank.
        labels: Labels of the job.
        annotations: Annotations of the job.
        mlflow_tracking_uri: The URL of MLflow, to which the ranks log.

    Returns:
        The job's name, and the last accuracy and loss that the program reported. If one is not reported or not finite,
        the accuracy is -1, and the loss the largest number, 1.8e308: neither fulfils a condition of a pipeline.
    """
    import sys

    from openshift_ai_sdk.training import MPIJob, ResourceRequirements
    from openshift_ai_sdk.training._training_history import finite

    launcher = ResourceRequirements(cpu=launcher_cpu or "100m", memory=launcher_memory or "1Gi")
    job = MPIJob(
        name,
        namespace or None,
        workers=workers,
        image=image or None,
        command=command,
        resources=ResourceRequirements(cpu=cpu or None, memory=memory or None, gpu=gpu, gpu_resource=gpu_resource),
        launcher_resources=launcher if launcher_cpu or launcher_memory else None,
        env=env,
        runtime=runtime or None,
        queue=queue or None,
        slots_per_worker=slots or None,
        connections=connections,
        volumes=volumes,
        volume_mounts=volume_mounts,
        retries=None if retries < 0 else retries,
        deadline=deadline or None,
        priority=priority or None,
        run_as_user=run_as_user or None,
        shm=shm or None,
        output_dir=output_dir or None,
        node_selector=node_selector,
        tolerations=tolerations,
        mpi_implementation=mpi_implementation or None,
        mpi_flags=mpi_flags,
        workdir=workdir or None,
        image_pull_secrets=image_pull_secrets,
        service_account=service_account or None,
        topology=topology or None,
        rdma=rdma or None,
        gang_timeout=gang_timeout or None,
        wait_for_quota=wait_for_quota,
        grace_period=grace_period or None,
        ttl=ttl or None,
        profile=profile,
        labels=labels,
        annotations=annotations,
        mlflow_tracking_uri=mlflow_tracking_uri or None,
    ).create()
    status = job.wait_for_completion(timeout=timeout or None, on_phase=print)

    training = status.training
    accuracy = finite(training.accuracy if training else None)
    loss = finite(training.loss if training else None)
    # KFP accepts neither NaN nor None for a number.
    return job.name, -1.0 if accuracy is None else accuracy, sys.float_info.max if loss is None else loss


def mpijob_component(
    base_image: str, packages_to_install: Sequence[str] = (), *, install_kfp_package: bool = True
) -> dsl.base_component.BaseComponent:
    """Return a component that runs an MPIJob with the arguments of ``run_mpijob``.

    The pipeline's service account needs the role ``edit`` (or ``mpijob-user``) in the job's namespace.

    Args:
        base_image: An image with Python 3.10 or later.
        packages_to_install: Packages that the image lacks, such as this one; pip installs them when the step starts.
        install_kfp_package: Whether pip installs kfp when the step starts. False needs no package index, if the image
            has ``openshift-ai-sdk[kfp]``.

    Example:
        >>> from kfp import dsl
        >>> run = mpijob_component("quay.io/me/sdk")
        >>> @dsl.pipeline
        ... def pipeline(epochs: int = 10):
        ...     run(name="train", image="quay.io/me/train", command="python train.py", workers=4)
    """
    return dsl.component(
        base_image=base_image,
        packages_to_install=list(packages_to_install),
        install_kfp_package=install_kfp_package,
    )(run_mpijob)
