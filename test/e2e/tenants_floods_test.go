package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/report"
)

const (
	// floodJobs is how many jobs of a flood wait, and floodLogs how many print floodLog bytes.
	floodJobs, floodLogs, floodLog = 50, 2, 40 << 20
	// floodAnnotation is the size of an annotation of each job that waits. An object may have 256 KiB of annotations.
	floodAnnotation = 100 << 10
)

// quickJob is a job of a launcher and a worker that prints a word and ends.
func quickJob(namespace, name string) *kubeflow.MPIJob {
	return agentJob(namespace, name, "openmpi", kubeflow.MPIImplementationOpenMPI, 1, "echo", "done")
}

// waitingJob is a large job that waits for a resource that no node has.
func waitingJob(namespace, name string) *kubeflow.MPIJob {
	job := quickJob(namespace, name)
	job.Annotations = map[string]string{"example.com/notes": strings.Repeat("n", floodAnnotation)}
	for _, container := range []*corev1.Container{launcher(job), worker(job)} {
		container.Resources.Limits["example.com/no-such-resource"] = resource.MustParse("1")
	}
	return job
}

// loudJob is a job that prints one line of half of floodLog and many short ones with control characters, and fails.
func loudJob(namespace, name string) *kubeflow.MPIJob {
	script := fmt.Sprintf(`head -c %d /dev/zero | tr '\0' x; echo; yes "epoch 1 loss 0.1 $(printf '\033[31m\001')" | head -c %d; echo; echo Segmentation fault >&2; exit 7`, floodLog/2, floodLog/2)
	return agentJob(namespace, name, "openmpi", kubeflow.MPIImplementationOpenMPI, 1, "sh", "-c", script)
}

// flood creates many jobs at once as a tenant, and returns those that fail by themselves.
func flood(t *testing.T, by tenant) (loud []*kubeflow.MPIJob) {
	t.Helper()
	var group sync.WaitGroup
	start := func(job *kubeflow.MPIJob) {
		group.Go(func() {
			eventually(t, "a job of the flood is created", time.Minute, func() error { return by.api.Create(t.Context(), job) })
		})
	}
	for n := range floodJobs {
		start(waitingJob(by.namespace, fmt.Sprintf("waits-%d", n)))
	}
	for n := range floodLogs {
		job := loudJob(by.namespace, fmt.Sprintf("loud-%d", n))
		loud = append(loud, job)
		start(job)
	}
	group.Wait()
	return loud
}

// TestTenantsExhaustNothing: a tenant creates many large jobs at once, some of which print long logs. Meanwhile a job of another
// tenant starts and succeeds, with a whole report. The flood's own jobs have their reports too, within bounds, and the operator
// lives. It does not run beside other tests, which it would slow down.
func TestTenantsExhaustNothing(t *testing.T) {
	keepOperators(t)
	tenants := [2]tenant{newTenant(t, "barbara-liskov"), newTenant(t, "edsger-dijkstra")}
	restarted := restarts(t, operatorKey.Namespace)
	for i, by := range tenants {
		other := tenants[1-i]
		took := func(name string) time.Duration {
			job, start := quickJob(other.namespace, fmt.Sprintf("%s-%d", name, i)), time.Now()
			eventually(t, "the other tenant's job is created", time.Minute, func() error { return other.api.Create(t.Context(), job) })
			waitFor(t, job, "it succeeds", succeeded)
			reported(t, kubeflow.Kind, other.namespace, job.Name, "its report is whole", func(s v1alpha1.JobReportStatus) error {
				if s.Phase != v1alpha1.PhaseSucceeded || len(s.Timeline) < 3 || len(s.Pods) == 0 {
					return fmt.Errorf("phase %s, %d entries on the timeline, %d pods", s.Phase, len(s.Timeline), len(s.Pods))
				}
				return nil
			})
			return time.Since(start)
		}
		alone := took("alone")
		loud := flood(t, by)
		t.Logf("a job of %s took %s, and %s in the flood of %s", other.name, alone.Round(time.Millisecond), took("flooded").Round(time.Millisecond), by.name)
		for _, job := range loud {
			record := reported(t, kubeflow.Kind, by.namespace, job.Name, "a loud job has its cause", func(s v1alpha1.JobReportStatus) error {
				if s.Phase != v1alpha1.PhaseFailed || s.Failure == nil {
					return fmt.Errorf("phase %s, %s", s.Phase, s.Message)
				}
				return nil
			})
			if record.Status.Failure.ExitCode == nil || *record.Status.Failure.ExitCode != 7 {
				t.Errorf("%s failed with %+v", job.Name, record.Status.Failure)
			}
			text, err := json.Marshal(record)
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > report.MaxSize {
				t.Errorf("the report of %s has %d bytes", job.Name, len(text))
			}
		}
		for n := range floodJobs {
			reported(t, kubeflow.Kind, by.namespace, fmt.Sprintf("waits-%d", n), "a job of the flood tells why it waits", func(s v1alpha1.JobReportStatus) error {
				if len(s.Findings) == 0 || s.Findings[0].Code != codes.InsufficientResources {
					return fmt.Errorf("phase %s, %s, %d findings", s.Phase, s.Message, len(s.Findings))
				}
				return nil
			})
		}
		if err := api.DeleteAllOf(t.Context(), &kubeflow.MPIJob{}, client.InNamespace(by.namespace)); err != nil {
			t.Fatal(err)
		}
	}
	for name, count := range restarts(t, operatorKey.Namespace) {
		if was, known := restarted[name]; known && count > was {
			t.Errorf("the operator's pod %s has restarted", name)
		}
	}
}
