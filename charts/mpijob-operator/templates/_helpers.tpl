{{/* The reference of an image: list ROOT IMAGE. */}}
{{- define "mpijob-operator.image" -}}
{{- $root := index . 0 -}}
{{- $image := index . 1 -}}
{{- with default $image.registry $root.Values.imageRegistry }}{{ . }}/{{ end -}}
{{ $image.repository }}:{{ default $root.Chart.AppVersion $image.tag }}
{{- with $image.digest }}@{{ . }}{{ end -}}
{{- end -}}

{{/* Whether the templates are rendered for a cluster that reports what it serves: "true" or "". Without one, Helm knows groups and
versions, but no kinds. */}}
{{- define "mpijob-operator.online" -}}
{{- if .Capabilities.APIVersions.Has "v1/Pod" }}true{{ end -}}
{{- end -}}

{{/* The platform: kubernetes or openshift. */}}
{{- define "mpijob-operator.platform" -}}
{{- if ne .Values.platform "auto" }}{{ .Values.platform }}
{{- else if .Capabilities.APIVersions.Has "security.openshift.io/v1" }}openshift
{{- else }}kubernetes{{ end -}}
{{- end -}}

{{/* The version of ValidatingAdmissionPolicy, or none. Without a cluster, that which Kubernetes of the version serves by default. */}}
{{- define "mpijob-operator.policyVersion" -}}
{{- $group := "admissionregistration.k8s.io" -}}
{{- if ne .Values.admissionPolicies "auto" }}{{ .Values.admissionPolicies }}
{{- else if .Capabilities.APIVersions.Has (printf "%s/v1/ValidatingAdmissionPolicy" $group) }}v1
{{- else if .Capabilities.APIVersions.Has (printf "%s/v1beta1/ValidatingAdmissionPolicy" $group) }}v1beta1
{{- else if include "mpijob-operator.online" . }}none
{{- else if semverCompare ">=1.30.0-0" .Capabilities.KubeVersion.Version }}v1
{{- else }}none{{ end -}}
{{- end -}}

{{/* The ConfigMap with certificates that operator and dashboard trust; "" for none. */}}
{{- define "mpijob-operator.trustedCA" -}}
{{- with .Values.trustedCA.configMap }}{{ . }}
{{- else }}{{ if .Values.trustedCA.openshift }}mpijob-trusted-ca{{ end }}{{ end -}}
{{- end -}}

{{/* The operator's flags, as elements of a list. What is empty is left to the operator's default. */}}
{{- define "mpijob-operator.arguments" -}}
{{- $s := .Values.settings -}}
{{- $flags := list
  (list "watch-namespaces" (join "," $s.watchNamespaces))
  (list "cluster-domain" $s.clusterDomain)
  (list "agent-delivery" $s.agentDelivery)
  (list "gang-scheduling" $s.gangScheduling)
  (list "autoscaler" $s.autoscaler)
  (list "ssh-key-type" $s.sshKeyType)
  (list "network-policies" $s.networkPolicies)
  (list "isolate-all-trainjobs" $s.isolateAllTrainJobs)
  (list "require-encryption" $s.requireEncryption)
  (list "allow-egress" (join "," $s.allowEgress))
  (list "training-progress" $s.trainingProgress)
  (list "report-retention" $s.reports.retention)
  (list "max-reports" $s.reports.perNamespace)
  (list "max-report-bytes" $s.reports.bytesPerNamespace)
  (list "max-total-report-bytes" $s.reports.bytes)
  (list "max-log-bytes" $s.reports.logBytes)
  (list "usage-labels" (join "," $s.reports.usageLabels))
  (list "logs-link" $s.logsLink)
  (list "job-links" (join " " $s.jobLinks))
  (list "log-bucket" $s.logBucket.name)
  (list "log-bucket-prefix" $s.logBucket.prefix)
  (list "log-bucket-endpoint" $s.logBucket.endpoint)
  (list "log-bucket-public-endpoint" $s.logBucket.publicEndpoint)
  (list "log-bucket-region" $s.logBucket.region)
  (list "log-bucket-retention" $s.logBucket.retention)
  (list "log-bucket-job-bytes" $s.logBucket.jobBytes)
  (list "tls-min-version" $s.tls.minVersion)
  (list "tls-cipher-suites" (join "," $s.tls.cipherSuites))
  (list "log-level" $s.logLevel) -}}
{{- $arguments := list -}}
{{- range $flags -}}
{{- $name := index . 0 -}}
{{- $value := index . 1 -}}
{{- if kindIs "float64" $value }}{{ $value = int64 $value | toString }}{{ end -}}
{{- if not (kindIs "invalid" $value) }}{{ with toString $value }}{{ $arguments = append $arguments (printf "--%s=%s" $name .) }}{{ end }}{{ end -}}
{{- end -}}
{{- range $s.mask }}{{ $arguments = append $arguments (printf "--mask=%s" .) }}{{ end -}}
{{- with concat $arguments .Values.extraArgs }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* Fails with a message if the cluster does not have what the values need. */}}
{{- define "mpijob-operator.validate" -}}
{{- if include "mpijob-operator.online" . -}}
{{- range dig "status" "storedVersions" list (lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" "mpijobs.kubeflow.org") -}}
{{- if ne . "v2beta1" -}}
{{- fail (printf "the cluster stores MPIJobs of kubeflow.org/%s, as Kubeflow Training Operator and old MPI operators install them: the CRD mpijobs.kubeflow.org cannot be replaced while it has them; see docs/migration.md#replace-training-operator" .) -}}
{{- end -}}
{{- end -}}
{{- if and .Values.runtimes.enabled (not (.Capabilities.APIVersions.Has "trainer.kubeflow.org/v1alpha1/ClusterTrainingRuntime")) -}}
{{- fail "runtimes.enabled: the cluster has no ClusterTrainingRuntimes (trainer.kubeflow.org/v1alpha1); install Kubeflow Trainer first, or set runtimes.enabled=false" -}}
{{- end -}}
{{- if and .Values.prometheus.enabled (not (.Capabilities.APIVersions.Has "monitoring.coreos.com/v1/ServiceMonitor")) -}}
{{- fail "prometheus.enabled: the cluster has no ServiceMonitors (monitoring.coreos.com/v1); install the Prometheus operator first, or set prometheus.enabled=false" -}}
{{- end -}}
{{- end -}}
{{- end -}}
