package dashboard_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

// TestCloneForm clones a job through a form: it starts with the job's values, and keeps what it does not show.
func TestCloneForm(t *testing.T) {
	needsServer(t)
	tokens := namespace(t, "form", "user", "viewer")
	user := caller{t, tokens["user"]}
	spec := jobs.Spec{
		Name: "first", Namespace: "form", Image: "quay.io/me/train", Workers: 2, CPU: "1", Memory: "1Gi", Env: []corev1.EnvVar{{Name: "MODE", Value: "fast"}},
		Volumes: []jobs.Volume{{Source: jobs.VolumeClaim, Name: "data", Path: "/data"}}, RunAsUser: new(int64(1000)), Priority: "urgent", RDMA: "required", Profile: true, TTL: new(time.Hour),
	}
	request := dashboard.SpecRequest{Spec: spec, CommandLine: "python train.py | tee log", FlagLine: "--bind-to core", Description: "A *first* job", DeadlineSeconds: 90, GangTimeoutSeconds: 600, Shm: "8Gi", Tolerations: []string{"nvidia.com/gpu"}}
	first := post[dashboard.Draft](user, "jobs", request)
	if !first.Created {
		t.Fatalf("the job was not created: %+v", first.Problem)
	}
	for _, sentence := range []string{
		"mpirun gets the flags --bind-to core.", "Its priority class is urgent.", "The job is ended after 1 minute 30 seconds.",
		"All pods are scheduled together; an attempt ends if not all are scheduled after 10 minutes.",
		"Every rank gets 1 variable of yours: MODE.", "Its programs run as user 1000.", "If no node offers the RDMA that its pods request, the job waits for it.", "The job is deleted 1 hour after its end; its report is kept.", "Its description is: A *first* job",
	} {
		if !slices.Contains(first.Words, sentence) {
			t.Errorf("%q is missing in %q", sentence, first.Words)
		}
	}
	for _, flag := range []string{"--mpi-flags '--bind-to core'", "--gang-timeout 10m0s", "--rdma required", "--ttl 1h0m0s", "--run-as-user 1000", "--priority urgent"} {
		if !strings.Contains(first.Commands[0].Text, flag) {
			t.Errorf("%s is missing in %s", flag, first.Commands[0].Text)
		}
	}
	for _, argument := range []string{`mpi_flags=["--bind-to", "core"]`, `gang_timeout="600s"`, `rdma="required"`, `ttl="3600s"`, `priority="urgent"`, `run_as_user=1000`, `env={"MODE": "fast"}`} {
		if !strings.Contains(first.Commands[1].Text, argument) {
			t.Errorf("%s is missing in %s", argument, first.Commands[1].Text)
		}
	}

	form := get[dashboard.CloneForm](user, "namespaces/form/jobs/mpijob/first/form")
	asked := form.Request
	if asked.Spec.Name != "first-2" || asked.CommandLine != request.CommandLine || asked.FlagLine != request.FlagLine || asked.Description != request.Description || asked.DeadlineSeconds != 90 || asked.GangTimeoutSeconds != 600 || asked.Spec.Priority != "urgent" || !asked.Spec.Profile || asked.Original != "mpijob/first" {
		t.Errorf("the form is %+v", asked)
	}
	if len(asked.Spec.Volumes) != 1 || asked.Spec.Volumes[0] != spec.Volumes[0] || asked.Shm != "8Gi" || *asked.TTLSeconds != 3600 || !slices.Equal(asked.Tolerations, []string{"nvidia.com/gpu"}) {
		t.Errorf("the form has the pods %+v", asked)
	}
	if strings.Contains(strings.Join(form.Kept, " "), "description") || slices.Contains(form.Kept, "spec.sshAuthMountPath") {
		t.Errorf("kept are %q", form.Kept)
	}
	asked.Spec.Workers, asked.Description, asked.DryRun = 3, "", true
	draft := post[dashboard.Draft](user, "jobs", asked)
	if draft.Problem != nil || !strings.Contains(draft.Diff, "+      replicas: 3") || !strings.Contains(draft.YAML, "mountPath: /data") || strings.Contains(draft.YAML, "description") || strings.Contains(draft.Diff+draft.Commands[0].Text, "managedFields") {
		t.Fatalf("the draft is %+v", draft)
	}
	if command := draft.Commands[0].Text; !strings.Contains(command, "clone mpijob/first first-2 -n form") || !strings.Contains(command, "spec.mpiReplicaSpecs.Worker.replicas=3") {
		t.Errorf("the command is %s", command)
	}
	asked.DryRun = false
	if draft = post[dashboard.Draft](user, "jobs", asked); !draft.Created || draft.Name != "first-2" {
		t.Errorf("the clone was not created: %+v", draft.Problem)
	}
	if asked.Original = "mpijob/absent"; post[dashboard.Draft](user, "jobs", asked).Problem.Code != "NotFound" {
		t.Error("a job that does not exist is cloned")
	}
	// A viewer sees the form, with the message that it may not create the clone. A stranger sees nothing.
	asked.Original, asked.Spec.Name = "mpijob/first", "first-3"
	if draft := post[dashboard.Draft](caller{t, tokens["viewer"]}, "jobs", asked); draft.Created || draft.Problem == nil || draft.Problem.Code != "Forbidden" {
		t.Errorf("a viewer clones: %+v", draft)
	}
	stranger := caller{t, namespace(t, "form-stranger", "user")["user"]}
	if status, body := stranger.send(http.MethodGet, "namespaces/form/jobs/mpijob/first/form", nil); status != http.StatusForbidden && status != http.StatusNotFound {
		t.Errorf("a stranger reads the form: status %d: %s", status, body)
	}
	asked.DryRun = true
	if draft := post[dashboard.Draft](stranger, "jobs", asked); draft.Problem == nil || draft.Diff != "" || draft.YAML != "" {
		t.Errorf("a stranger sees the job: %+v", draft)
	}

	// No specification describes a job without workers: the form is its YAML.
	mpiJob(t, "form", "alone", func(job *kubeflow.MPIJob) { delete(job.Spec.MPIReplicaSpecs, kubeflow.MPIReplicaTypeWorker) })
	if form := get[dashboard.CloneForm](user, "namespaces/form/jobs/mpijob/alone/form"); form.Note == "" || !strings.Contains(form.Request.YAML, "name: alone-2") || form.Request.Original != "mpijob/alone" {
		t.Errorf("the form of a job without workers is %+v", form)
	}
	invalid := post[dashboard.Draft](user, "jobs", dashboard.SpecRequest{Spec: spec, CommandLine: "mpirun -n 2 x", FlagLine: "-n 3", GangTimeoutSeconds: 1 << 40, DryRun: true})
	var fields []string
	for _, field := range invalid.Problem.Fields {
		fields = append(fields, field.Field)
	}
	if !slices.Contains(fields, "mpiFlags") || !slices.Contains(fields, "gangTimeout") {
		t.Errorf("the errors are about %q", fields)
	}
}
