"""Models of MPIJob kubeflow.org/v2beta1, from config/crd/kubeflow.org_mpijobs.yaml.

Run `make sdk-generate` to update this file; do not edit it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from openshift_ai_sdk.training._generated._base import Written

__all__ = [
    "Affinity",
    "AppArmorProfile",
    "AwsElasticBlockStore",
    "AzureDisk",
    "AzureFile",
    "Capabilities",
    "Cephfs",
    "Cinder",
    "Claim",
    "ClusterTrustBundle",
    "Condition",
    "ConfigMap",
    "ConfigMapKeyRef",
    "ConfigMapRef",
    "Container",
    "Csi",
    "DataSource",
    "DataSourceRef",
    "DnsConfig",
    "DownwardAPI",
    "DownwardAPIItem",
    "EmptyDir",
    "Env",
    "EnvFrom",
    "Ephemeral",
    "EphemeralContainer",
    "EvictionResponder",
    "Exec",
    "ExitCodes",
    "Fc",
    "FieldRef",
    "FileKeyRef",
    "FlexVolume",
    "Flocker",
    "GcePersistentDisk",
    "GitRepo",
    "Glusterfs",
    "Grpc",
    "HostAliase",
    "HostPath",
    "HttpGet",
    "HttpHeader",
    "Image",
    "ImagePullSecret",
    "Iscsi",
    "Item",
    "LabelSelector",
    "LabelSelectorMatchExpression",
    "Lifecycle",
    "LivenessProbe",
    "MPIJob",
    "MPIJobSpec",
    "MPIJobStatus",
    "MatchExpression",
    "Metadata",
    "Nfs",
    "NodeAffinity",
    "Option",
    "Os",
    "PersistentVolumeClaim",
    "PhotonPersistentDisk",
    "PodAffinity",
    "PodAffinityPreferredDuringSchedulingIgnoredDuringExecution",
    "PodAffinityTerm",
    "PodCertificate",
    "Port",
    "PortworxVolume",
    "PostStart",
    "Preference",
    "PreferredDuringSchedulingIgnoredDuringExecution",
    "Projected",
    "Quobyte",
    "Rbd",
    "ReadinessGate",
    "ReplicaSpec",
    "ReplicaStatuses",
    "ReplicaStatusesLabelSelector",
    "RequiredDuringSchedulingIgnoredDuringExecution",
    "ResizePolicy",
    "ResourceClaim",
    "ResourceFieldRef",
    "Resources",
    "RestartPolicyRule",
    "RunPolicy",
    "ScaleIO",
    "SchedulingGroup",
    "SchedulingPolicy",
    "SeLinuxOptions",
    "Secret",
    "SecurityContext",
    "ServiceAccountToken",
    "Sleep",
    "Source",
    "SourcesConfigMap",
    "SourcesDownwardAPI",
    "Spec",
    "SpecResources",
    "SpecSecurityContext",
    "Storageos",
    "TcpSocket",
    "Template",
    "TemplateSpec",
    "Toleration",
    "TopologySpreadConstraint",
    "ValueFrom",
    "Volume",
    "VolumeClaimTemplate",
    "VolumeDevice",
    "VolumeMount",
    "VsphereVolume",
    "WindowsOptions",
]


class Metadata(Written):
    """Metadata of the Kubernetes API."""

    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    labels: dict[str, str] | None = None
    name: str | None = None
    namespace: str | None = None


class MatchExpression(Written):
    """MatchExpression of the Kubernetes API."""

    key: str
    operator: str
    values: list[str] | None = None


class Preference(Written):
    """Preference of the Kubernetes API."""

    match_expressions: list[MatchExpression] | None = Field(default=None, alias="matchExpressions")
    match_fields: list[MatchExpression] | None = Field(default=None, alias="matchFields")


class PreferredDuringSchedulingIgnoredDuringExecution(Written):
    """PreferredDuringSchedulingIgnoredDuringExecution of the Kubernetes API."""

    preference: Preference
    weight: int


class RequiredDuringSchedulingIgnoredDuringExecution(Written):
    """RequiredDuringSchedulingIgnoredDuringExecution of the Kubernetes API."""

    node_selector_terms: list[Preference] = Field(alias="nodeSelectorTerms")


class NodeAffinity(Written):
    """NodeAffinity of the Kubernetes API."""

    preferred_during_scheduling_ignored_during_execution: list[PreferredDuringSchedulingIgnoredDuringExecution] | None = Field(default=None, alias="preferredDuringSchedulingIgnoredDuringExecution")
    required_during_scheduling_ignored_during_execution: RequiredDuringSchedulingIgnoredDuringExecution | None = Field(default=None, alias="requiredDuringSchedulingIgnoredDuringExecution")


class LabelSelector(Written):
    """LabelSelector of the Kubernetes API."""

    match_expressions: list[MatchExpression] | None = Field(default=None, alias="matchExpressions")
    match_labels: dict[str, str] | None = Field(default=None, alias="matchLabels")


class PodAffinityTerm(Written):
    """PodAffinityTerm of the Kubernetes API."""

    label_selector: LabelSelector | None = Field(default=None, alias="labelSelector")
    match_label_keys: list[str] | None = Field(default=None, alias="matchLabelKeys")
    mismatch_label_keys: list[str] | None = Field(default=None, alias="mismatchLabelKeys")
    namespace_selector: LabelSelector | None = Field(default=None, alias="namespaceSelector")
    namespaces: list[str] | None = None
    topology_key: str = Field(alias="topologyKey")


class PodAffinityPreferredDuringSchedulingIgnoredDuringExecution(Written):
    """PodAffinityPreferredDuringSchedulingIgnoredDuringExecution of the Kubernetes API."""

    pod_affinity_term: PodAffinityTerm = Field(alias="podAffinityTerm")
    weight: int


class PodAffinity(Written):
    """PodAffinity of the Kubernetes API."""

    preferred_during_scheduling_ignored_during_execution: list[PodAffinityPreferredDuringSchedulingIgnoredDuringExecution] | None = Field(default=None, alias="preferredDuringSchedulingIgnoredDuringExecution")
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] | None = Field(default=None, alias="requiredDuringSchedulingIgnoredDuringExecution")


class Affinity(Written):
    """Affinity of the Kubernetes API."""

    node_affinity: NodeAffinity | None = Field(default=None, alias="nodeAffinity")
    pod_affinity: PodAffinity | None = Field(default=None, alias="podAffinity")
    pod_anti_affinity: PodAffinity | None = Field(default=None, alias="podAntiAffinity")


class ConfigMapKeyRef(Written):
    """ConfigMapKeyRef of the Kubernetes API."""

    key: str
    name: str | None = None
    optional: bool | None = None


class FieldRef(Written):
    """FieldRef of the Kubernetes API."""

    api_version: str | None = Field(default=None, alias="apiVersion")
    field_path: str = Field(alias="fieldPath")


class FileKeyRef(Written):
    """FileKeyRef of the Kubernetes API."""

    key: str
    optional: bool | None = None
    path: str
    volume_name: str = Field(alias="volumeName")


class ResourceFieldRef(Written):
    """ResourceFieldRef of the Kubernetes API."""

    container_name: str | None = Field(default=None, alias="containerName")
    divisor: int | str | None = None
    resource: str


class ValueFrom(Written):
    """ValueFrom of the Kubernetes API."""

    config_map_key_ref: ConfigMapKeyRef | None = Field(default=None, alias="configMapKeyRef")
    field_ref: FieldRef | None = Field(default=None, alias="fieldRef")
    file_key_ref: FileKeyRef | None = Field(default=None, alias="fileKeyRef")
    resource_field_ref: ResourceFieldRef | None = Field(default=None, alias="resourceFieldRef")
    secret_key_ref: ConfigMapKeyRef | None = Field(default=None, alias="secretKeyRef")


class Env(Written):
    """Env of the Kubernetes API."""

    name: str
    value: str | None = None
    value_from: ValueFrom | None = Field(default=None, alias="valueFrom")


class ConfigMapRef(Written):
    """ConfigMapRef of the Kubernetes API."""

    name: str | None = None
    optional: bool | None = None


class EnvFrom(Written):
    """EnvFrom of the Kubernetes API."""

    config_map_ref: ConfigMapRef | None = Field(default=None, alias="configMapRef")
    prefix: str | None = None
    secret_ref: ConfigMapRef | None = Field(default=None, alias="secretRef")


class Exec(Written):
    """Exec of the Kubernetes API."""

    command: list[str] | None = None


class HttpHeader(Written):
    """HttpHeader of the Kubernetes API."""

    name: str
    value: str


class HttpGet(Written):
    """HttpGet of the Kubernetes API."""

    host: str | None = None
    http_headers: list[HttpHeader] | None = Field(default=None, alias="httpHeaders")
    path: str | None = None
    port: int | str
    protocol: str | None = None
    scheme: str | None = None


class Sleep(Written):
    """Sleep of the Kubernetes API."""

    seconds: int


class TcpSocket(Written):
    """TcpSocket of the Kubernetes API."""

    host: str | None = None
    port: int | str


class PostStart(Written):
    """PostStart of the Kubernetes API."""

    exec: Exec | None = None
    http_get: HttpGet | None = Field(default=None, alias="httpGet")
    sleep: Sleep | None = None
    tcp_socket: TcpSocket | None = Field(default=None, alias="tcpSocket")


class Lifecycle(Written):
    """Lifecycle of the Kubernetes API."""

    post_start: PostStart | None = Field(default=None, alias="postStart")
    pre_stop: PostStart | None = Field(default=None, alias="preStop")
    stop_signal: str | None = Field(default=None, alias="stopSignal")


class Grpc(Written):
    """Grpc of the Kubernetes API."""

    mode: str | None = None
    port: int
    service: str | None = None


class LivenessProbe(Written):
    """LivenessProbe of the Kubernetes API."""

    exec: Exec | None = None
    failure_threshold: int | None = Field(default=None, alias="failureThreshold")
    grpc: Grpc | None = None
    http_get: HttpGet | None = Field(default=None, alias="httpGet")
    initial_delay_seconds: int | None = Field(default=None, alias="initialDelaySeconds")
    period_seconds: int | None = Field(default=None, alias="periodSeconds")
    success_threshold: int | None = Field(default=None, alias="successThreshold")
    tcp_socket: TcpSocket | None = Field(default=None, alias="tcpSocket")
    termination_grace_period_seconds: int | None = Field(default=None, alias="terminationGracePeriodSeconds")
    timeout_seconds: int | None = Field(default=None, alias="timeoutSeconds")


class Port(Written):
    """Port of the Kubernetes API."""

    container_port: int = Field(alias="containerPort")
    host_ip: str | None = Field(default=None, alias="hostIP")
    host_port: int | None = Field(default=None, alias="hostPort")
    name: str | None = None
    protocol: str | None = None


class ResizePolicy(Written):
    """ResizePolicy of the Kubernetes API."""

    resource_name: str = Field(alias="resourceName")
    restart_policy: str = Field(alias="restartPolicy")


class Claim(Written):
    """Claim of the Kubernetes API."""

    name: str
    request: str | None = None


class Resources(Written):
    """Resources of the Kubernetes API."""

    claims: list[Claim] | None = None
    limits: dict[str, int | str] | None = None
    requests: dict[str, int | str] | None = None


class ExitCodes(Written):
    """ExitCodes of the Kubernetes API."""

    operator: str
    values: list[int] | None = None


class RestartPolicyRule(Written):
    """RestartPolicyRule of the Kubernetes API."""

    action: str
    exit_codes: ExitCodes | None = Field(default=None, alias="exitCodes")


class AppArmorProfile(Written):
    """AppArmorProfile of the Kubernetes API."""

    localhost_profile: str | None = Field(default=None, alias="localhostProfile")
    type: str


class Capabilities(Written):
    """Capabilities of the Kubernetes API."""

    add: list[str] | None = None
    drop: list[str] | None = None


class SeLinuxOptions(Written):
    """SeLinuxOptions of the Kubernetes API."""

    level: str | None = None
    role: str | None = None
    type: str | None = None
    user: str | None = None


class WindowsOptions(Written):
    """WindowsOptions of the Kubernetes API."""

    gmsa_credential_spec: str | None = Field(default=None, alias="gmsaCredentialSpec")
    gmsa_credential_spec_name: str | None = Field(default=None, alias="gmsaCredentialSpecName")
    host_process: bool | None = Field(default=None, alias="hostProcess")
    run_as_user_name: str | None = Field(default=None, alias="runAsUserName")


class SecurityContext(Written):
    """SecurityContext of the Kubernetes API."""

    allow_privilege_escalation: bool | None = Field(default=None, alias="allowPrivilegeEscalation")
    app_armor_profile: AppArmorProfile | None = Field(default=None, alias="appArmorProfile")
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = Field(default=None, alias="procMount")
    read_only_root_filesystem: bool | None = Field(default=None, alias="readOnlyRootFilesystem")
    run_as_group: int | None = Field(default=None, alias="runAsGroup")
    run_as_non_root: bool | None = Field(default=None, alias="runAsNonRoot")
    run_as_user: int | None = Field(default=None, alias="runAsUser")
    se_linux_options: SeLinuxOptions | None = Field(default=None, alias="seLinuxOptions")
    seccomp_profile: AppArmorProfile | None = Field(default=None, alias="seccompProfile")
    windows_options: WindowsOptions | None = Field(default=None, alias="windowsOptions")


class VolumeDevice(Written):
    """VolumeDevice of the Kubernetes API."""

    device_path: str = Field(alias="devicePath")
    name: str


class VolumeMount(Written):
    """VolumeMount of the Kubernetes API."""

    bind_mount_options: list[str] | None = Field(default=None, alias="bindMountOptions")
    mount_path: str = Field(alias="mountPath")
    mount_propagation: str | None = Field(default=None, alias="mountPropagation")
    name: str
    read_only: bool | None = Field(default=None, alias="readOnly")
    recursive_read_only: str | None = Field(default=None, alias="recursiveReadOnly")
    sub_path: str | None = Field(default=None, alias="subPath")
    sub_path_expr: str | None = Field(default=None, alias="subPathExpr")


class Container(Written):
    """Container of the Kubernetes API."""

    args: list[str] | None = None
    command: list[str] | None = None
    env: list[Env] | None = None
    env_from: list[EnvFrom] | None = Field(default=None, alias="envFrom")
    image: str | None = None
    image_pull_policy: str | None = Field(default=None, alias="imagePullPolicy")
    lifecycle: Lifecycle | None = None
    liveness_probe: LivenessProbe | None = Field(default=None, alias="livenessProbe")
    name: str
    ports: list[Port] | None = None
    readiness_probe: LivenessProbe | None = Field(default=None, alias="readinessProbe")
    resize_policy: list[ResizePolicy] | None = Field(default=None, alias="resizePolicy")
    resources: Resources | None = None
    restart_policy: str | None = Field(default=None, alias="restartPolicy")
    restart_policy_rules: list[RestartPolicyRule] | None = Field(default=None, alias="restartPolicyRules")
    security_context: SecurityContext | None = Field(default=None, alias="securityContext")
    startup_probe: LivenessProbe | None = Field(default=None, alias="startupProbe")
    stdin: bool | None = None
    stdin_once: bool | None = Field(default=None, alias="stdinOnce")
    termination_message_path: str | None = Field(default=None, alias="terminationMessagePath")
    termination_message_policy: str | None = Field(default=None, alias="terminationMessagePolicy")
    tty: bool | None = None
    volume_devices: list[VolumeDevice] | None = Field(default=None, alias="volumeDevices")
    volume_mounts: list[VolumeMount] | None = Field(default=None, alias="volumeMounts")
    working_dir: str | None = Field(default=None, alias="workingDir")


class Option(Written):
    """Option of the Kubernetes API."""

    name: str | None = None
    value: str | None = None


class DnsConfig(Written):
    """DnsConfig of the Kubernetes API."""

    nameservers: list[str] | None = None
    options: list[Option] | None = None
    searches: list[str] | None = None


class EphemeralContainer(Written):
    """EphemeralContainer of the Kubernetes API."""

    args: list[str] | None = None
    command: list[str] | None = None
    env: list[Env] | None = None
    env_from: list[EnvFrom] | None = Field(default=None, alias="envFrom")
    image: str | None = None
    image_pull_policy: str | None = Field(default=None, alias="imagePullPolicy")
    lifecycle: Lifecycle | None = None
    liveness_probe: LivenessProbe | None = Field(default=None, alias="livenessProbe")
    name: str
    ports: list[Port] | None = None
    readiness_probe: LivenessProbe | None = Field(default=None, alias="readinessProbe")
    resize_policy: list[ResizePolicy] | None = Field(default=None, alias="resizePolicy")
    resources: Resources | None = None
    restart_policy: str | None = Field(default=None, alias="restartPolicy")
    restart_policy_rules: list[RestartPolicyRule] | None = Field(default=None, alias="restartPolicyRules")
    security_context: SecurityContext | None = Field(default=None, alias="securityContext")
    startup_probe: LivenessProbe | None = Field(default=None, alias="startupProbe")
    stdin: bool | None = None
    stdin_once: bool | None = Field(default=None, alias="stdinOnce")
    target_container_name: str | None = Field(default=None, alias="targetContainerName")
    termination_message_path: str | None = Field(default=None, alias="terminationMessagePath")
    termination_message_policy: str | None = Field(default=None, alias="terminationMessagePolicy")
    tty: bool | None = None
    volume_devices: list[VolumeDevice] | None = Field(default=None, alias="volumeDevices")
    volume_mounts: list[VolumeMount] | None = Field(default=None, alias="volumeMounts")
    working_dir: str | None = Field(default=None, alias="workingDir")


class EvictionResponder(Written):
    """EvictionResponder of the Kubernetes API."""

    name: str = Field(min_length=1)
    priority: int = Field(ge=0, le=100000)


class HostAliase(Written):
    """HostAliase of the Kubernetes API."""

    hostnames: list[str] | None = None
    ip: str


class ImagePullSecret(Written):
    """ImagePullSecret of the Kubernetes API."""

    name: str | None = None


class Os(Written):
    """Os of the Kubernetes API."""

    name: str


class ReadinessGate(Written):
    """ReadinessGate of the Kubernetes API."""

    condition_type: str = Field(alias="conditionType")


class ResourceClaim(Written):
    """ResourceClaim of the Kubernetes API."""

    name: str
    resource_claim_name: str | None = Field(default=None, alias="resourceClaimName")
    resource_claim_template_name: str | None = Field(default=None, alias="resourceClaimTemplateName")


class SchedulingGroup(Written):
    """SchedulingGroup of the Kubernetes API."""

    pod_group_name: str | None = Field(default=None, alias="podGroupName")


class SpecSecurityContext(Written):
    """SpecSecurityContext of the Kubernetes API."""

    app_armor_profile: AppArmorProfile | None = Field(default=None, alias="appArmorProfile")
    fs_group: int | None = Field(default=None, alias="fsGroup")
    fs_group_change_policy: str | None = Field(default=None, alias="fsGroupChangePolicy")
    run_as_group: int | None = Field(default=None, alias="runAsGroup")
    run_as_non_root: bool | None = Field(default=None, alias="runAsNonRoot")
    run_as_user: int | None = Field(default=None, alias="runAsUser")
    se_linux_change_policy: str | None = Field(default=None, alias="seLinuxChangePolicy")
    se_linux_options: SeLinuxOptions | None = Field(default=None, alias="seLinuxOptions")
    seccomp_profile: AppArmorProfile | None = Field(default=None, alias="seccompProfile")
    supplemental_groups: list[int] | None = Field(default=None, alias="supplementalGroups")
    supplemental_groups_policy: str | None = Field(default=None, alias="supplementalGroupsPolicy")
    sysctls: list[HttpHeader] | None = None
    windows_options: WindowsOptions | None = Field(default=None, alias="windowsOptions")


class Toleration(Written):
    """Toleration of the Kubernetes API."""

    effect: str | None = None
    key: str | None = None
    operator: str | None = None
    toleration_seconds: int | None = Field(default=None, alias="tolerationSeconds")
    value: str | None = None


class TopologySpreadConstraint(Written):
    """TopologySpreadConstraint of the Kubernetes API."""

    label_selector: LabelSelector | None = Field(default=None, alias="labelSelector")
    match_label_keys: list[str] | None = Field(default=None, alias="matchLabelKeys")
    max_skew: int = Field(alias="maxSkew")
    min_domains: int | None = Field(default=None, alias="minDomains")
    node_affinity_policy: str | None = Field(default=None, alias="nodeAffinityPolicy")
    node_taints_policy: str | None = Field(default=None, alias="nodeTaintsPolicy")
    topology_key: str = Field(alias="topologyKey")
    when_unsatisfiable: str = Field(alias="whenUnsatisfiable")


class AwsElasticBlockStore(Written):
    """AwsElasticBlockStore of the Kubernetes API."""

    fs_type: str | None = Field(default=None, alias="fsType")
    partition: int | None = None
    read_only: bool | None = Field(default=None, alias="readOnly")
    volume_id: str = Field(alias="volumeID")


class AzureDisk(Written):
    """AzureDisk of the Kubernetes API."""

    caching_mode: str | None = Field(default=None, alias="cachingMode")
    disk_name: str = Field(alias="diskName")
    disk_uri: str = Field(alias="diskURI")
    fs_type: str | None = Field(default=None, alias="fsType")
    kind: str | None = None
    read_only: bool | None = Field(default=None, alias="readOnly")


class AzureFile(Written):
    """AzureFile of the Kubernetes API."""

    read_only: bool | None = Field(default=None, alias="readOnly")
    secret_name: str = Field(alias="secretName")
    share_name: str = Field(alias="shareName")


class Cephfs(Written):
    """Cephfs of the Kubernetes API."""

    monitors: list[str]
    path: str | None = None
    read_only: bool | None = Field(default=None, alias="readOnly")
    secret_file: str | None = Field(default=None, alias="secretFile")
    secret_ref: ImagePullSecret | None = Field(default=None, alias="secretRef")
    user: str | None = None


class Cinder(Written):
    """Cinder of the Kubernetes API."""

    fs_type: str | None = Field(default=None, alias="fsType")
    read_only: bool | None = Field(default=None, alias="readOnly")
    secret_ref: ImagePullSecret | None = Field(default=None, alias="secretRef")
    volume_id: str = Field(alias="volumeID")


class Item(Written):
    """Item of the Kubernetes API."""

    key: str
    mode: int | None = None
    path: str
    user: int | None = None


class ConfigMap(Written):
    """ConfigMap of the Kubernetes API."""

    default_mode: int | None = Field(default=None, alias="defaultMode")
    default_user: int | None = Field(default=None, alias="defaultUser")
    items: list[Item] | None = None
    name: str | None = None
    optional: bool | None = None


class Csi(Written):
    """Csi of the Kubernetes API."""

    driver: str
    fs_type: str | None = Field(default=None, alias="fsType")
    node_publish_secret_ref: ImagePullSecret | None = Field(default=None, alias="nodePublishSecretRef")
    read_only: bool | None = Field(default=None, alias="readOnly")
    volume_attributes: dict[str, str] | None = Field(default=None, alias="volumeAttributes")


class DownwardAPIItem(Written):
    """DownwardAPIItem of the Kubernetes API."""

    field_ref: FieldRef | None = Field(default=None, alias="fieldRef")
    mode: int | None = None
    path: str
    resource_field_ref: ResourceFieldRef | None = Field(default=None, alias="resourceFieldRef")
    user: int | None = None


class DownwardAPI(Written):
    """DownwardAPI of the Kubernetes API."""

    default_mode: int | None = Field(default=None, alias="defaultMode")
    default_user: int | None = Field(default=None, alias="defaultUser")
    items: list[DownwardAPIItem] | None = None


class EmptyDir(Written):
    """EmptyDir of the Kubernetes API."""

    medium: str | None = None
    mode: int | None = None
    size_limit: int | str | None = Field(default=None, alias="sizeLimit")


class DataSource(Written):
    """DataSource of the Kubernetes API."""

    api_group: str | None = Field(default=None, alias="apiGroup")
    kind: str
    name: str


class DataSourceRef(Written):
    """DataSourceRef of the Kubernetes API."""

    api_group: str | None = Field(default=None, alias="apiGroup")
    kind: str
    name: str
    namespace: str | None = None


class SpecResources(Written):
    """SpecResources of the Kubernetes API."""

    limits: dict[str, int | str] | None = None
    requests: dict[str, int | str] | None = None


class Spec(Written):
    """Spec of the Kubernetes API."""

    access_modes: list[str] | None = Field(default=None, alias="accessModes")
    data_source: DataSource | None = Field(default=None, alias="dataSource")
    data_source_ref: DataSourceRef | None = Field(default=None, alias="dataSourceRef")
    resources: SpecResources | None = None
    selector: LabelSelector | None = None
    storage_class_name: str | None = Field(default=None, alias="storageClassName")
    volume_attributes_class_name: str | None = Field(default=None, alias="volumeAttributesClassName")
    volume_mode: str | None = Field(default=None, alias="volumeMode")
    volume_name: str | None = Field(default=None, alias="volumeName")


class VolumeClaimTemplate(Written):
    """VolumeClaimTemplate of the Kubernetes API."""

    metadata: Metadata | None = None
    spec: Spec


class Ephemeral(Written):
    """Ephemeral of the Kubernetes API."""

    volume_claim_template: VolumeClaimTemplate | None = Field(default=None, alias="volumeClaimTemplate")


class Fc(Written):
    """Fc of the Kubernetes API."""

    fs_type: str | None = Field(default=None, alias="fsType")
    lun: int | None = None
    read_only: bool | None = Field(default=None, alias="readOnly")
    target_ww_ns: list[str] | None = Field(default=None, alias="targetWWNs")
    wwids: list[str] | None = None


class FlexVolume(Written):
    """FlexVolume of the Kubernetes API."""

    driver: str
    fs_type: str | None = Field(default=None, alias="fsType")
    options: dict[str, str] | None = None
    read_only: bool | None = Field(default=None, alias="readOnly")
    secret_ref: ImagePullSecret | None = Field(default=None, alias="secretRef")


class Flocker(Written):
    """Flocker of the Kubernetes API."""

    dataset_name: str | None = Field(default=None, alias="datasetName")
    dataset_uuid: str | None = Field(default=None, alias="datasetUUID")


class GcePersistentDisk(Written):
    """GcePersistentDisk of the Kubernetes API."""

    fs_type: str | None = Field(default=None, alias="fsType")
    partition: int | None = None
    pd_name: str = Field(alias="pdName")
    read_only: bool | None = Field(default=None, alias="readOnly")


class GitRepo(Written):
    """GitRepo of the Kubernetes API."""

    directory: str | None = None
    repository: str
    revision: str | None = None


class Glusterfs(Written):
    """Glusterfs of the Kubernetes API."""

    endpoints: str
    path: str
    read_only: bool | None = Field(default=None, alias="readOnly")


class HostPath(Written):
    """HostPath of the Kubernetes API."""

    path: str
    type: str | None = None


class Image(Written):
    """Image of the Kubernetes API."""

    pull_policy: str | None = Field(default=None, alias="pullPolicy")
    reference: str | None = None


class Iscsi(Written):
    """Iscsi of the Kubernetes API."""

    chap_auth_discovery: bool | None = Field(default=None, alias="chapAuthDiscovery")
    chap_auth_session: bool | None = Field(default=None, alias="chapAuthSession")
    fs_type: str | None = Field(default=None, alias="fsType")
    initiator_name: str | None = Field(default=None, alias="initiatorName")
    iqn: str
    iscsi_interface: str | None = Field(default=None, alias="iscsiInterface")
    lun: int
    portals: list[str] | None = None
    read_only: bool | None = Field(default=None, alias="readOnly")
    secret_ref: ImagePullSecret | None = Field(default=None, alias="secretRef")
    target_portal: str = Field(alias="targetPortal")


class Nfs(Written):
    """Nfs of the Kubernetes API."""

    path: str
    read_only: bool | None = Field(default=None, alias="readOnly")
    server: str


class PersistentVolumeClaim(Written):
    """PersistentVolumeClaim of the Kubernetes API."""

    claim_name: str = Field(alias="claimName")
    read_only: bool | None = Field(default=None, alias="readOnly")


class PhotonPersistentDisk(Written):
    """PhotonPersistentDisk of the Kubernetes API."""

    fs_type: str | None = Field(default=None, alias="fsType")
    pd_id: str = Field(alias="pdID")


class PortworxVolume(Written):
    """PortworxVolume of the Kubernetes API."""

    fs_type: str | None = Field(default=None, alias="fsType")
    read_only: bool | None = Field(default=None, alias="readOnly")
    volume_id: str = Field(alias="volumeID")


class ClusterTrustBundle(Written):
    """ClusterTrustBundle of the Kubernetes API."""

    label_selector: LabelSelector | None = Field(default=None, alias="labelSelector")
    name: str | None = None
    optional: bool | None = None
    path: str
    signer_name: str | None = Field(default=None, alias="signerName")
    user: int | None = None


class SourcesConfigMap(Written):
    """SourcesConfigMap of the Kubernetes API."""

    items: list[Item] | None = None
    name: str | None = None
    optional: bool | None = None


class SourcesDownwardAPI(Written):
    """SourcesDownwardAPI of the Kubernetes API."""

    items: list[DownwardAPIItem] | None = None


class PodCertificate(Written):
    """PodCertificate of the Kubernetes API."""

    certificate_chain_path: str | None = Field(default=None, alias="certificateChainPath")
    credential_bundle_path: str | None = Field(default=None, alias="credentialBundlePath")
    key_path: str | None = Field(default=None, alias="keyPath")
    key_type: str = Field(alias="keyType")
    max_expiration_seconds: int | None = Field(default=None, alias="maxExpirationSeconds")
    signer_name: str = Field(alias="signerName")
    user: int | None = None
    user_annotations: dict[str, str] | None = Field(default=None, alias="userAnnotations")


class ServiceAccountToken(Written):
    """ServiceAccountToken of the Kubernetes API."""

    audience: str | None = None
    expiration_seconds: int | None = Field(default=None, alias="expirationSeconds")
    path: str
    user: int | None = None


class Source(Written):
    """Source of the Kubernetes API."""

    cluster_trust_bundle: ClusterTrustBundle | None = Field(default=None, alias="clusterTrustBundle")
    config_map: SourcesConfigMap | None = Field(default=None, alias="configMap")
    downward_api: SourcesDownwardAPI | None = Field(default=None, alias="downwardAPI")
    pod_certificate: PodCertificate | None = Field(default=None, alias="podCertificate")
    secret: SourcesConfigMap | None = None
    service_account_token: ServiceAccountToken | None = Field(default=None, alias="serviceAccountToken")


class Projected(Written):
    """Projected of the Kubernetes API."""

    default_mode: int | None = Field(default=None, alias="defaultMode")
    default_user: int | None = Field(default=None, alias="defaultUser")
    sources: list[Source] | None = None


class Quobyte(Written):
    """Quobyte of the Kubernetes API."""

    group: str | None = None
    read_only: bool | None = Field(default=None, alias="readOnly")
    registry: str
    tenant: str | None = None
    user: str | None = None
    volume: str


class Rbd(Written):
    """Rbd of the Kubernetes API."""

    fs_type: str | None = Field(default=None, alias="fsType")
    image: str
    keyring: str | None = None
    monitors: list[str]
    pool: str | None = None
    read_only: bool | None = Field(default=None, alias="readOnly")
    secret_ref: ImagePullSecret | None = Field(default=None, alias="secretRef")
    user: str | None = None


class ScaleIO(Written):
    """ScaleIO of the Kubernetes API."""

    fs_type: str | None = Field(default=None, alias="fsType")
    gateway: str
    protection_domain: str | None = Field(default=None, alias="protectionDomain")
    read_only: bool | None = Field(default=None, alias="readOnly")
    secret_ref: ImagePullSecret = Field(alias="secretRef")
    ssl_enabled: bool | None = Field(default=None, alias="sslEnabled")
    storage_mode: str | None = Field(default=None, alias="storageMode")
    storage_pool: str | None = Field(default=None, alias="storagePool")
    system: str
    volume_name: str | None = Field(default=None, alias="volumeName")


class Secret(Written):
    """Secret of the Kubernetes API."""

    default_mode: int | None = Field(default=None, alias="defaultMode")
    default_user: int | None = Field(default=None, alias="defaultUser")
    items: list[Item] | None = None
    optional: bool | None = None
    secret_name: str | None = Field(default=None, alias="secretName")


class Storageos(Written):
    """Storageos of the Kubernetes API."""

    fs_type: str | None = Field(default=None, alias="fsType")
    read_only: bool | None = Field(default=None, alias="readOnly")
    secret_ref: ImagePullSecret | None = Field(default=None, alias="secretRef")
    volume_name: str | None = Field(default=None, alias="volumeName")
    volume_namespace: str | None = Field(default=None, alias="volumeNamespace")


class VsphereVolume(Written):
    """VsphereVolume of the Kubernetes API."""

    fs_type: str | None = Field(default=None, alias="fsType")
    storage_policy_id: str | None = Field(default=None, alias="storagePolicyID")
    storage_policy_name: str | None = Field(default=None, alias="storagePolicyName")
    volume_path: str = Field(alias="volumePath")


class Volume(Written):
    """Volume of the Kubernetes API."""

    aws_elastic_block_store: AwsElasticBlockStore | None = Field(default=None, alias="awsElasticBlockStore")
    azure_disk: AzureDisk | None = Field(default=None, alias="azureDisk")
    azure_file: AzureFile | None = Field(default=None, alias="azureFile")
    cephfs: Cephfs | None = None
    cinder: Cinder | None = None
    config_map: ConfigMap | None = Field(default=None, alias="configMap")
    csi: Csi | None = None
    downward_api: DownwardAPI | None = Field(default=None, alias="downwardAPI")
    empty_dir: EmptyDir | None = Field(default=None, alias="emptyDir")
    ephemeral: Ephemeral | None = None
    fc: Fc | None = None
    flex_volume: FlexVolume | None = Field(default=None, alias="flexVolume")
    flocker: Flocker | None = None
    gce_persistent_disk: GcePersistentDisk | None = Field(default=None, alias="gcePersistentDisk")
    git_repo: GitRepo | None = Field(default=None, alias="gitRepo")
    glusterfs: Glusterfs | None = None
    host_path: HostPath | None = Field(default=None, alias="hostPath")
    image: Image | None = None
    iscsi: Iscsi | None = None
    name: str
    nfs: Nfs | None = None
    persistent_volume_claim: PersistentVolumeClaim | None = Field(default=None, alias="persistentVolumeClaim")
    photon_persistent_disk: PhotonPersistentDisk | None = Field(default=None, alias="photonPersistentDisk")
    portworx_volume: PortworxVolume | None = Field(default=None, alias="portworxVolume")
    projected: Projected | None = None
    quobyte: Quobyte | None = None
    rbd: Rbd | None = None
    scale_io: ScaleIO | None = Field(default=None, alias="scaleIO")
    secret: Secret | None = None
    storageos: Storageos | None = None
    vsphere_volume: VsphereVolume | None = Field(default=None, alias="vsphereVolume")


class TemplateSpec(Written):
    """TemplateSpec of the Kubernetes API."""

    active_deadline_seconds: int | None = Field(default=None, alias="activeDeadlineSeconds")
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = Field(default=None, alias="automountServiceAccountToken")
    containers: list[Container]
    dns_config: DnsConfig | None = Field(default=None, alias="dnsConfig")
    dns_policy: str | None = Field(default=None, alias="dnsPolicy")
    enable_service_links: bool | None = Field(default=None, alias="enableServiceLinks")
    ephemeral_containers: list[EphemeralContainer] | None = Field(default=None, alias="ephemeralContainers")
    eviction_responders: list[EvictionResponder] | None = Field(default=None, alias="evictionResponders", max_length=10)
    host_aliases: list[HostAliase] | None = Field(default=None, alias="hostAliases")
    host_ipc: bool | None = Field(default=None, alias="hostIPC")
    host_network: bool | None = Field(default=None, alias="hostNetwork")
    host_pid: bool | None = Field(default=None, alias="hostPID")
    host_users: bool | None = Field(default=None, alias="hostUsers")
    hostname: str | None = None
    hostname_override: str | None = Field(default=None, alias="hostnameOverride")
    image_pull_secrets: list[ImagePullSecret] | None = Field(default=None, alias="imagePullSecrets")
    init_containers: list[Container] | None = Field(default=None, alias="initContainers")
    node_name: str | None = Field(default=None, alias="nodeName")
    node_selector: dict[str, str] | None = Field(default=None, alias="nodeSelector")
    os: Os | None = None
    overhead: dict[str, int | str] | None = None
    preemption_policy: str | None = Field(default=None, alias="preemptionPolicy")
    priority: int | None = None
    priority_class_name: str | None = Field(default=None, alias="priorityClassName")
    readiness_gates: list[ReadinessGate] | None = Field(default=None, alias="readinessGates")
    resource_claims: list[ResourceClaim] | None = Field(default=None, alias="resourceClaims")
    resources: Resources | None = None
    restart_policy: str | None = Field(default=None, alias="restartPolicy")
    runtime_class_name: str | None = Field(default=None, alias="runtimeClassName")
    scheduler_name: str | None = Field(default=None, alias="schedulerName")
    scheduling_gates: list[Os] | None = Field(default=None, alias="schedulingGates")
    scheduling_group: SchedulingGroup | None = Field(default=None, alias="schedulingGroup")
    security_context: SpecSecurityContext | None = Field(default=None, alias="securityContext")
    service_account: str | None = Field(default=None, alias="serviceAccount")
    service_account_name: str | None = Field(default=None, alias="serviceAccountName")
    set_hostname_as_fqdn: bool | None = Field(default=None, alias="setHostnameAsFQDN")
    share_process_namespace: bool | None = Field(default=None, alias="shareProcessNamespace")
    subdomain: str | None = None
    termination_grace_period_seconds: int | None = Field(default=None, alias="terminationGracePeriodSeconds")
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = Field(default=None, alias="topologySpreadConstraints")
    volumes: list[Volume] | None = None


class Template(Written):
    """Template of the Kubernetes API."""

    metadata: Metadata | None = None
    spec: TemplateSpec | None = None


class ReplicaSpec(Written):
    """ReplicaSpec is a description of the replica."""

    replicas: int | None = None
    """Replicas is the desired number of replicas of the given template.

    If unspecified, defaults to 1.
    """
    restart_policy: str | None = Field(default=None, alias="restartPolicy")
    """Restart policy for all replicas within the job.

    One of Always, OnFailure, Never and ExitCode. Default to Never.
    """
    template: Template | None = None
    """Template is the object that describes the pod that will be created for this replica.

    RestartPolicy in PodTemplateSpec will be overide by RestartPolicy in ReplicaSpec
    """


class SchedulingPolicy(Written):
    """SchedulingPolicy defines the policy related to scheduling, e.g.

    Gang-scheduling
    """

    min_available: int | None = Field(default=None, alias="minAvailable")
    """MinAvailable defines the minimal number of member to run the PodGroup.

    If the gang-scheduling isn't empty, input is passed to `.spec.minMember` in PodGroup. Note that, when using this
    field, you need to make sure the application supports resizing (e.g., Elastic Horovod). If not set, it defaults to
    the number of workers.
    """
    min_resources: dict[str, int | str] | None = Field(default=None, alias="minResources")
    """MinResources defines the minimal resources of members to run the PodGroup.

    If the gang-scheduling isn't empty, input is passed to `.spec.minResources` in PodGroup for scheduler-plugins.
    """
    priority_class: str | None = Field(default=None, alias="priorityClass")
    """PriorityClass defines the PodGroup's PriorityClass.

    If the gang-scheduling is set to the volcano, input is passed to `.spec.priorityClassName` in PodGroup for volcano,
    and if it is set to the scheduler-plugins, input isn't passed to PodGroup for scheduler-plugins.
    """
    queue: str | None = None
    """Queue defines the queue name to allocate resource for PodGroup.

    If the gang-scheduling is set to the volcano, input is passed to `.spec.queue` in PodGroup for the volcano, and if
    it is set to the scheduler-plugins, input isn't passed to PodGroup.
    """
    schedule_timeout_seconds: int | None = Field(default=None, alias="scheduleTimeoutSeconds")
    """SchedulerTimeoutSeconds defines the maximal time of members to wait before run the PodGroup.

    If the gang-scheduling is set to the scheduler-plugins, input is passed to `.spec.scheduleTimeoutSeconds` in
    PodGroup for the scheduler-plugins, and if it is set to the volcano, input isn't passed to PodGroup.
    """


class RunPolicy(Written):
    """RunPolicy encapsulates various runtime policies of the job."""

    active_deadline_seconds: int | None = Field(default=None, alias="activeDeadlineSeconds")
    """Specifies the duration in seconds relative to the startTime that the job may be active before the system tries to
    terminate it; value must be positive integer."""
    backoff_limit: int | None = Field(default=None, alias="backoffLimit")
    """Optional number of retries before marking this job failed."""
    clean_pod_policy: str | None = Field(default=None, alias="cleanPodPolicy")
    """CleanPodPolicy defines the policy to kill pods after the job completes.

    Default to Running.
    """
    managed_by: str | None = Field(default=None, alias="managedBy")
    """ManagedBy is used to indicate the controller or entity that manages a MPIJob.

    The value must be either empty, 'kubeflow.org/mpi-operator' or 'kueue.x-k8s.io/multikueue'. The mpi-operator
    reconciles a MPIJob which doesn't have this field at all or the field value is the reserved string
    'kubeflow.org/mpi-operator', but delegates reconciling the MPIJob with 'kueue.x-k8s.io/multikueue' to the Kueue. The
    field is immutable.
    """
    scheduling_policy: SchedulingPolicy | None = Field(default=None, alias="schedulingPolicy")
    """SchedulingPolicy defines the policy related to scheduling, e.g.

    Gang-scheduling
    """
    suspend: bool | None = None
    """Suspend specifies whether the MPIJob controller should create Pods or not.

    If a MPIJob is created with suspend set to true, no Pods are created by the MPIJob controller. If a MPIJob is
    suspended after creation (i.e. the flag goes from false to true), the MPIJob controller will delete all active Pods
    and PodGroups associated with this MPIJob. Also, it will suspend the Launcher Job. Users must design their workload
    to gracefully handle this. Suspending a Job will reset the StartTime field of the MPIJob. Defaults to false.
    """
    ttl_seconds_after_finished: int | None = Field(default=None, alias="ttlSecondsAfterFinished")
    """TTLSecondsAfterFinished is the TTL to clean up jobs.

    It may take extra ReconcilePeriod seconds for the cleanup, since reconcile gets called periodically. Default to
    infinite.
    """


class MPIJobSpec(Written):
    """MPIJobSpec of the Kubernetes API."""

    launcher_creation_policy: str | None = Field(default=None, alias="launcherCreationPolicy")
    """LauncherCreationPolicy if WaitForWorkersReady, the launcher is created only after all workers are in Ready state.

    Defaults to AtStartup.
    """
    mpi_implementation: Literal["OpenMPI", "Intel", "MPICH"] | None = Field(default=None, alias="mpiImplementation")
    """MPIImplementation is the MPI implementation.

    Options are "OpenMPI" (default), "Intel" and "MPICH".
    """
    mpi_replica_specs: dict[str, ReplicaSpec] = Field(alias="mpiReplicaSpecs")
    """MPIReplicaSpecs contains maps from `MPIReplicaType` to `ReplicaSpec` that specify the MPI replicas to run."""
    run_launcher_as_worker: bool | None = Field(default=None, alias="runLauncherAsWorker")
    """RunLauncherAsWorker indicates whether to run worker process in launcher Defaults to false."""
    run_policy: RunPolicy | None = Field(default=None, alias="runPolicy")
    """RunPolicy encapsulates various runtime policies of the job."""
    slots_per_worker: int | None = Field(default=None, alias="slotsPerWorker")
    """Specifies the number of slots per worker used in hostfile.

    Defaults to 1.
    """
    ssh_auth_mount_path: str | None = Field(default=None, alias="sshAuthMountPath")
    """SSHAuthMountPath is the directory where SSH keys are mounted.

    Defaults to "/root/.ssh".
    """


class Condition(Written):
    """JobCondition describes the state of the job at a certain point."""

    last_transition_time: datetime | None = Field(default=None, alias="lastTransitionTime")
    """Last time the condition transitioned from one status to another."""
    last_update_time: datetime | None = Field(default=None, alias="lastUpdateTime")
    """The last time this condition was updated."""
    message: str | None = None
    """A human-readable message indicating details about the transition."""
    reason: str | None = None
    """The reason for the condition's last transition."""
    status: Literal["True", "False", "Unknown"]
    """Status of the condition, one of True, False, Unknown."""
    type: str
    """Type of job condition."""


class LabelSelectorMatchExpression(Written):
    """A label selector requirement is a selector that contains values, a key, and an operator that relates the key and
    values."""

    key: str
    """Key is the label key that the selector applies to."""
    operator: str
    """Operator represents a key's relationship to a set of values.

    Valid operators are In, NotIn, Exists and DoesNotExist.
    """
    values: list[str] | None = None
    """Values is an array of string values.

    If the operator is In or NotIn, the values array must be non-empty. If the operator is Exists or DoesNotExist, the
    values array must be empty. This array is replaced during a strategic merge patch.
    """


class ReplicaStatusesLabelSelector(Written):
    """Deprecated: Use selector instead."""

    match_expressions: list[LabelSelectorMatchExpression] | None = Field(default=None, alias="matchExpressions")
    """MatchExpressions is a list of label selector requirements.

    The requirements are ANDed.
    """
    match_labels: dict[str, str] | None = Field(default=None, alias="matchLabels")
    """MatchLabels is a map of {key,value} pairs.

    A single {key,value} in the matchLabels map is equivalent to an element of matchExpressions, whose key field is
    "key", the operator is "In", and the values array contains only "value". The requirements are ANDed.
    """


class ReplicaStatuses(Written):
    """ReplicaStatus represents the current observed state of the replica."""

    active: int | None = None
    """The number of actively running pods."""
    failed: int | None = None
    """The number of pods which reached phase failed."""
    label_selector: ReplicaStatusesLabelSelector | None = Field(default=None, alias="labelSelector")
    """Deprecated: Use selector instead."""
    selector: str | None = None
    """A selector is a label query over a set of resources.

    The result of matchLabels and matchExpressions are ANDed. An empty selector matches all objects. A null selector
    matches no objects.
    """
    succeeded: int | None = None
    """The number of pods which reached phase succeeded."""


class MPIJobStatus(Written):
    """JobStatus represents the current observed state of the training Job."""

    completion_time: datetime | None = Field(default=None, alias="completionTime")
    """Represents time when the job was completed.

    It is not guaranteed to be set in happens-before order across separate operations. It is represented in RFC3339 form
    and is in UTC.
    """
    conditions: list[Condition] | None = None
    """Conditions is a list of current observed job conditions."""
    last_reconcile_time: datetime | None = Field(default=None, alias="lastReconcileTime")
    """Represents last time when the job was reconciled.

    It is not guaranteed to be set in happens-before order across separate operations. It is represented in RFC3339 form
    and is in UTC.
    """
    replica_statuses: dict[str, ReplicaStatuses] | None = Field(default=None, alias="replicaStatuses")
    """ReplicaStatuses is map of ReplicaType and ReplicaStatus, specifies the status of each replica."""
    start_time: datetime | None = Field(default=None, alias="startTime")
    """Represents time when the job was acknowledged by the job controller.

    It is not guaranteed to be set in happens-before order across separate operations. It is represented in RFC3339 form
    and is in UTC.
    """


class MPIJob(Written):
    """MPIJob of the Kubernetes API."""

    api_version: str | None = Field(default=None, alias="apiVersion")
    """APIVersion defines the versioned schema of this representation of an object.

    Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More
    info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
    """
    kind: str | None = None
    """Kind is a string value representing the REST resource this object represents.

    Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info:
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
    """
    metadata: dict[str, Any] | None = None
    spec: MPIJobSpec | None = None
    status: MPIJobStatus | None = None
    """JobStatus represents the current observed state of the training Job."""
