package report_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/report"
)

// TestJobLinks: the links of a job are those of its annotation, of the administrator and of its variables, without secrets.
func TestJobLinks(t *testing.T) {
	env := func(pairs ...string) (list []corev1.EnvVar) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, corev1.EnvVar{Name: pairs[i], Value: pairs[i+1]})
		}
		return list
	}
	const uri, experiment, run = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_ID", "MLFLOW_RUN_ID"
	for name, test := range map[string]struct {
		annotation, all  string
		launcher, worker []corev1.EnvVar
		want             []v1alpha1.Link
	}{
		"none": {},
		"an annotation": {
			annotation: "TensorBoard=https://tb.example.com/?run={namespace}/{name}",
			want:       []v1alpha1.Link{{Title: "TensorBoard", URL: "https://tb.example.com/?run=team/pi%26x"}},
		},
		"the administrator's before an annotation": {
			annotation: "mlflow=https://other.example.com Notes=https://notes.example.com", all: "MLflow=https://mlflow.example.com TensorBoard=https://tb.example.com",
			launcher: env(uri, "https://third.example.com"),
			want: []v1alpha1.Link{
				{Title: "MLflow", URL: "https://mlflow.example.com"}, {Title: "TensorBoard", URL: "https://tb.example.com"}, {Title: "Notes", URL: "https://notes.example.com"},
			},
		},
		"two of the job beside four of the administrator": {
			annotation: "Notes=https://notes.example.com d=https://other.example.com", all: "a=https://a b=https://b c=https://c d=https://d",
			launcher: env(uri, "https://mlflow.example.com"),
			want: []v1alpha1.Link{
				{Title: "a", URL: "https://a"}, {Title: "b", URL: "https://b"}, {Title: "Notes", URL: "https://notes.example.com"}, {Title: "MLflow", URL: "https://mlflow.example.com"},
			},
		},
		"one of the job beside four of the administrator": {
			annotation: "Notes=https://notes.example.com", all: "a=https://a b=https://b c=https://c d=https://d",
			want: []v1alpha1.Link{{Title: "a", URL: "https://a"}, {Title: "b", URL: "https://b"}, {Title: "c", URL: "https://c"}, {Title: "Notes", URL: "https://notes.example.com"}},
		},
		"four of the job beside one of the administrator": {
			annotation: "a=https://a b=https://b c=https://c d=https://d", all: "Cluster=https://x",
			want: []v1alpha1.Link{{Title: "Cluster", URL: "https://x"}, {Title: "a", URL: "https://a"}, {Title: "b", URL: "https://b"}, {Title: "c", URL: "https://c"}},
		},
		"a secret in an annotation": {
			annotation: "TensorBoard=https://tb.example.com/?token=abcdef0123456789",
			want:       []v1alpha1.Link{{Title: "TensorBoard", URL: "https://tb.example.com/?token=****"}},
		},
		"a server": {launcher: env(uri, "https://mlflow.example.com/"), want: []v1alpha1.Link{{Title: "MLflow", URL: "https://mlflow.example.com"}}},
		"an experiment": {
			worker: env(uri, "https://mlflow.example.com/base", experiment, "42"),
			want:   []v1alpha1.Link{{Title: "MLflow", URL: "https://mlflow.example.com/base/#/experiments/42"}},
		},
		"a run": {
			launcher: env(uri, "http://10.1.2.3:5000", experiment, "42", run, "0a1b2c"),
			want:     []v1alpha1.Link{{Title: "MLflow", URL: "http://10.1.2.3:5000/#/experiments/42/runs/0a1b2c"}},
		},
		"credentials": {
			launcher: env(uri, "https://me:secret@mlflow.example.com/?key=secret#secret", experiment, "../secret", run, "<b>"),
			want:     []v1alpha1.Link{{Title: "MLflow", URL: "https://mlflow.example.com"}},
		},
		"the last variable of a name": {launcher: env(uri, "https://a.example.com", uri, "https://b.example.com"), want: []v1alpha1.Link{{Title: "MLflow", URL: "https://b.example.com"}}},
		"a script":                    {launcher: env(uri, "javascript:alert(1)")},
		"Databricks":                  {launcher: env(uri, "databricks")},
		"a folder":                    {launcher: env(uri, "file:///data/mlruns")},
		"another variable":            {launcher: env(uri, "https://$(HOST)/")},
		"a Service":                   {launcher: env(uri, "http://mlflow.tools.svc.cluster.local:5000")},
		"a Service of the namespace":  {launcher: env(uri, "http://mlflow:5000")},
		"the pod":                     {launcher: env(uri, "http://127.0.0.1:5000")},
	} {
		t.Run(name, func(t *testing.T) {
			job := mpi.New()
			job.Launcher.Template.Spec.Containers = []corev1.Container{{Env: test.launcher}}
			job.Workers.Template.Spec.Containers = []corev1.Container{{Env: test.worker}}
			var err error
			if job.Links, err = mpi.ParseLinks(test.annotation); err != nil {
				t.Fatal(err)
			}
			links, err := report.ParseJobLinks(test.all)
			if err != nil {
				t.Fatal(err)
			}
			made := &v1alpha1.JobReport{ObjectMeta: metav1.ObjectMeta{Namespace: "team"}}
			made.Spec.JobRef.Name = "pi&x"
			if diff := cmp.Diff(test.want, links.Of(job, made, logs.Masker{}.Text)); diff != "" {
				t.Errorf("the links differ (-want +got):\n%s", diff)
			}
		})
	}
}
