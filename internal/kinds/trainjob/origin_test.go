package trainjob_test

import (
	"testing"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestFieldOf: a field of a pod that the user of a TrainJob sets is found where the user wrote it; others are the runtime's.
func TestFieldOf(t *testing.T) {
	const (
		trainer = "{numNodes: 2, image: mine, env: [{name: A, value: a}, {name: MPI_AGENT_KEY, value: b}], resourcesPerNode: {requests: {memory: 2Gi}, limits: {memory: 1Gi}}}"
		patched = "volumes: [{name: data, emptyDir: {}}], tolerations: [{key: a}, {key: b}], nodeSelector: {pool: gpu}, serviceAccountName: me, " +
			"initContainers: [{name: mpi-agent, env: [{name: I, value: i}]}], containers: [{name: node, volumeMounts: [{name: data, mountPath: /data}], securityContext: {runAsUser: 1}}]"
		patches   = "  runtimePatches: [{manager: me, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {metadata: {annotations: {a: b}}, spec: {" + patched + "}}}}}]}}}}]"
		overrides = "  podTemplateOverrides: [{targetJobs: [{name: launcher}], spec: {}}, {targetJobs: [{name: node}], spec: {" + patched + "}}]"
		patch     = "spec.runtimePatches[0].trainingRuntimeSpec.template.spec.replicatedJobs[0].template.spec.template"
		override  = "spec.podTemplateOverrides[1]"
		inPods    = "spec.containers[0]"
	)
	tests := map[string]struct {
		trainer, more string
		change        []string
		role          mpi.Role
		path, want    string
	}{
		"memory":                    {trainer: trainer, path: inPods + ".resources.requests", want: "spec.trainer.resourcesPerNode.requests"},
		"the launcher's memory":     {trainer: trainer, role: mpi.RoleLauncher, path: inPods + ".resources.requests[memory]", want: "spec.trainer.resourcesPerNode.requests[memory]"},
		"a device":                  {trainer: "{resourcesPerNode: {requests: {nvidia.com/gpu: 1}}}", path: inPods + ".resources.limits[nvidia.com/gpu]", want: "spec.trainer.resourcesPerNode.limits[nvidia.com/gpu]"},
		"no resources of the job":   {trainer: "{numNodes: 2}", path: inPods + ".resources.requests"},
		"the runtime's own request": {trainer: "{resourcesPerNode: {limits: {memory: 64Mi}}}", path: inPods + ".resources.requests"},
		"workers that are not sized": {
			trainer: trainer, change: []string{"runLauncherAsNode: true", "runLauncherAsNode: false"}, path: inPods + ".resources.requests",
		},
		"the launcher, if workers are not sized": {
			trainer: trainer, change: []string{"runLauncherAsNode: true", "runLauncherAsNode: false"}, role: mpi.RoleLauncher, path: inPods + ".resources.requests",
			want: "spec.trainer.resourcesPerNode.requests",
		},
		"an image":                     {trainer: trainer, path: inPods + ".image", want: "spec.trainer.image"},
		"the runtime's image":          {trainer: "{numNodes: 2}", path: inPods + ".image"},
		"a variable":                   {trainer: trainer, path: inPods + ".env[1].name", want: "spec.trainer.env[0].name"},
		"a variable of both":           {trainer: trainer, path: inPods + ".env[2]", want: "spec.trainer.env[1]"},
		"a variable that is not there": {trainer: trainer, path: inPods + ".env[9].name"},
		"the runtime's variable":       {trainer: "{env: [{name: A}]}", path: inPods + ".env[0].name"},
		"a mount":                      {trainer: trainer, more: patches, path: inPods + ".volumeMounts[1].name", want: patch + ".spec.containers[0].volumeMounts[0].name"},
		"a field of a mount":           {trainer: trainer, more: patches, path: inPods + ".volumeMounts[1].subPath", want: patch + ".spec.containers[0].volumeMounts[0].subPath"},
		"the runtime's mount":          {trainer: trainer, more: patches, path: inPods + ".volumeMounts[0].name"},
		"a mount of an override":       {trainer: trainer, more: overrides, path: inPods + ".volumeMounts[1].mountPath", want: override + ".spec.containers[0].volumeMounts[0].mountPath"},
		"a mount of the other pods":    {trainer: trainer, more: overrides, role: mpi.RoleLauncher, path: inPods + ".volumeMounts[1].mountPath"},
		"a user":                       {trainer: trainer, more: patches, path: inPods + ".securityContext.runAsUser", want: patch + ".spec.containers[0].securityContext.runAsUser"},
		"a container's other field":    {trainer: trainer, more: patches, path: inPods + ".ports[0].containerPort"},
		"a container":                  {trainer: trainer, more: patches, path: inPods},
		"an init container's variable": {trainer: trainer, more: patches, path: "spec.initContainers[0].env[0].name", want: patch + ".spec.initContainers[0].env[0].name"},
		"a volume":                     {trainer: trainer, more: patches, path: "spec.volumes[1].emptyDir.sizeLimit", want: patch + ".spec.volumes[0].emptyDir.sizeLimit"},
		"the runtime's volume":         {trainer: trainer, more: patches, path: "spec.volumes[0].name"},
		"a toleration":                 {trainer: trainer, more: patches, path: "spec.tolerations[1].operator", want: patch + ".spec.tolerations[1].operator"},
		"a node label":                 {trainer: trainer, more: patches, path: "spec.nodeSelector", want: patch + ".spec.nodeSelector"},
		"an account":                   {trainer: trainer, more: patches, path: "spec.serviceAccountName", want: patch + ".spec.serviceAccountName"},
		"an annotation":                {trainer: trainer, more: patches, path: "metadata.annotations", want: patch + ".metadata.annotations"},
		"the pod":                      {trainer: trainer, more: patches, path: "spec"},
		"nothing, from a policy":       {trainer: trainer, more: patches},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			role := test.role
			if role == "" {
				role = mpi.RoleWorker
			}
			if got := trainjob.FieldOf(job(t, test.trainer, test.more), base(t, test.change...), role, test.path); got != test.want {
				t.Errorf("%s is from %q, want %q", test.path, got, test.want)
			}
		})
	}
}

// TestPatchedUser: the account and the user of the pods are those of the patches, field by field.
func TestPatchedUser(t *testing.T) {
	const pod = "serviceAccountName: me, securityContext: {runAsUser: 7}, initContainers: [{name: mpi-agent, securityContext: {runAsUser: 8}}], containers: [{name: node, securityContext: {runAsUser: 9, capabilities: {add: [IPC_LOCK]}}}]"
	got := trainjob.Convert(job(t, "{numNodes: 2, command: [mpirun, pi]}", "  runtimePatches: [{manager: me, trainingRuntimeSpec: {template: {spec: {replicatedJobs: [{name: node, template: {spec: {template: {spec: {"+pod+"}}}}}]}}}}]"), base(t))
	worker := got.Workers.Template.Spec
	if worker.ServiceAccountName != "me" || *worker.SecurityContext.RunAsUser != 7 || !*worker.SecurityContext.RunAsNonRoot {
		t.Errorf("workers run as %s, %+v", worker.ServiceAccountName, worker.SecurityContext)
	}
	if user := worker.InitContainers[0].SecurityContext; *user.RunAsUser != 8 || *user.AllowPrivilegeEscalation {
		t.Errorf("the init container runs as %+v", user)
	}
	if user := worker.Containers[0].SecurityContext; *user.RunAsUser != 9 || *user.AllowPrivilegeEscalation || len(user.Capabilities.Add) != 1 || len(user.Capabilities.Drop) != 1 {
		t.Errorf("workers run as %+v", user)
	}
	if launcher := got.Launcher.Template.Spec; launcher.ServiceAccountName != "" || launcher.SecurityContext.RunAsUser != nil {
		t.Errorf("the launcher runs as %s, %+v", launcher.ServiceAccountName, launcher.SecurityContext)
	}
}
