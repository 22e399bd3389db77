package dashboard_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/jobs"
)

func allSettings() (all []jobs.Setting) {
	for _, group := range jobs.Settings() {
		all = append(all, group.Settings...)
	}
	return all
}

// TestWizardHasSettings: the wizard's form has a field for each setting of the table that names one, and sets each field of jobs from
// it, and from a clone.
func TestWizardHasSettings(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "web", "src", "pages", "create", "form.ts"))
	if err != nil {
		t.Fatal(err)
	}
	form := string(text)
	part := func(from string) string {
		_, after, found := strings.Cut(form, from)
		body, _, closed := strings.Cut(after, "\n}")
		if !found || !closed {
			t.Fatalf("form.ts has no %s", from)
		}
		return body
	}
	// These select how the job is described, or belong to another field.
	fields := []string{"way", "yaml", "template", "values", "topologyPreferred"}
	for _, s := range allSettings() {
		if s.Form == "" {
			continue
		}
		fields = append(fields, s.Form)
		for _, function := range []string{"export function formOf(", "export function requestOf("} {
			// formOf names the field that it sets, requestOf the field that it reads.
			pattern := `\b` + s.Form + `:`
			if strings.Contains(function, "requestOf") {
				pattern = `\bform\.` + s.Form + `\b`
			}
			if s.Name != "suspend" && !regexp.MustCompile(pattern).MatchString(part(function)) {
				t.Errorf("%s does not have the field %s of the setting %s", function, s.Form, s.Name)
			}
		}
	}
	var have []string
	for _, match := range regexp.MustCompile(`(?m)^  (\w+): `).FindAllStringSubmatch(part("export interface JobForm {"), -1) {
		have = append(have, match[1])
	}
	slices.Sort(fields)
	slices.Sort(have)
	if !slices.Equal(have, fields) {
		t.Errorf("the fields of the form are %v, the table has %v", have, fields)
	}
	// Each field has an input in a step of the wizard.
	steps, err := filepath.Glob(filepath.Join("..", "..", "web", "src", "pages", "create", "*Step.tsx"))
	if err != nil || len(steps) == 0 {
		t.Fatalf("there are no steps: %v", err)
	}
	var inputs strings.Builder
	for _, step := range steps {
		text, err := os.ReadFile(step)
		if err != nil {
			t.Fatal(err)
		}
		inputs.Write(text)
	}
	for _, field := range have {
		if field != "template" && !regexp.MustCompile(`set\(\{`+field+`\b|field="`+field+`"|\b`+field+`: `).MatchString(inputs.String()) {
			t.Errorf("no step of the wizard sets %s", field)
		}
	}
}

// TestSettingsInCommands: the review shows each setting as a flag and as an argument of Python.
func TestSettingsInCommands(t *testing.T) {
	needsServer(t)
	user := caller{t, namespace(t, "settings", "user")["user"]}
	spec := jobs.Spec{
		Name: "all", Namespace: "settings", Image: "quay.io/me/train", Workers: 2, GPU: 1, GPUResource: "amd.com/gpu", CPU: "1", Memory: "1Gi", Implementation: "MPICH", Queue: "q", Priority: "urgent", Slots: new(int32(2)),
		Connections: []string{"data"}, Env: []corev1.EnvVar{{Name: "A", Value: "1"}}, Labels: map[string]string{"team": "a"}, RunAsUser: new(int64(7)), Retries: new(int32(1)), Suspend: true, RDMA: "optional", Profile: true, WaitForQuota: true,
		Volumes: []jobs.Volume{{Source: jobs.VolumeClaim, Name: "data", Path: "/data", ReadOnly: true}, {Source: jobs.VolumeSecret, Name: "token", Path: "/token"}}, Output: &jobs.Volume{Source: jobs.VolumeClaim, Name: "results", Path: "/results"},
		NodeSelector: map[string]string{"gpu": "a100"}, ImagePullSecrets: []string{"registry"}, ServiceAccount: "trainer", WorkDir: "/app", LauncherCPU: "1", LauncherMemory: "2Gi", Topology: "example.com/rack", TopologyPreferred: true,
	}
	request := dashboard.SpecRequest{
		Spec: spec, CommandLine: "python train.py", FlagLine: "-bind-to core", DeadlineSeconds: 90, GangTimeoutSeconds: 600, TTLSeconds: new(int64(3600)), GracePeriodSeconds: new(int64(60)),
		Shm: "8Gi", Tolerations: []string{"pool=fast:NoSchedule"}, DryRun: true,
	}
	draft := post[dashboard.Draft](user, "jobs", request)
	if len(draft.Commands) != 2 {
		t.Fatalf("the draft is %+v", draft)
	}
	for _, s := range allSettings() {
		if s.Flag == "" || s.Name == "name" || s.Name == "runtime" {
			continue
		}
		if !strings.Contains(draft.Commands[0].Text, "--"+s.Flag+" ") {
			t.Errorf("--%s is missing in %s", s.Flag, draft.Commands[0].Text)
		}
		if !strings.Contains(draft.Commands[1].Text, s.Python+"=") {
			t.Errorf("%s is missing in %s", s.Python, draft.Commands[1].Text)
		}
	}
	for _, argument := range []string{
		`volumes=[{"name": "volume-1", "secret": {"secretName": "token"}}]`,
		`volume_mounts=[{"name": "data", "mountPath": "/data", "readOnly": True}, {"name": "volume-1", "mountPath": "/token"}]`,
		`profile=True`, `topology="prefer:example.com/rack"`, `output_dir="results:/results"`, `tolerations=["pool=fast:NoSchedule"]`, `grace_period="60s"`, `launcher_resources=ResourceRequirements(cpu="1", memory="2Gi")`,
	} {
		if !strings.Contains(draft.Commands[1].Text, argument) {
			t.Errorf("%s is missing in %s", argument, draft.Commands[1].Text)
		}
	}
	for _, sentence := range []string{
		"Its pods run on nodes with gpu=a100.", "Its pods tolerate the taints pool=fast:NoSchedule.", "If possible, all pods run on nodes with the same value of example.com/rack.",
		"All pods mount claim data at /data to read.", "The calls of MPI in each rank are counted and timed, for its communication profile.", "Each pod has 8Gi of shared memory.", "Results are kept on the claim results in the folder all, at /results and in the variable OUTPUT_DIR.",
	} {
		if !slices.Contains(draft.Words, sentence) {
			t.Errorf("%q is missing in %q", sentence, draft.Words)
		}
	}
	// What is wrong is an error of its field.
	request.Shm, request.Tolerations, request.TTLSeconds, request.Spec.Volumes = "much", []string{"a:Never"}, new(int64(-1)), []jobs.Volume{{Source: jobs.VolumeClaim, Name: "data", Path: "data"}}
	var fields []string
	for _, wrong := range post[dashboard.Draft](user, "jobs", request).Problem.Fields {
		fields = append(fields, wrong.Field)
	}
	for _, field := range []string{"shm", "toleration", "ttl", "volume"} {
		if !slices.Contains(fields, field) {
			t.Errorf("no error of %s in %q", field, fields)
		}
	}
}
