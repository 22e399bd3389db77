package report

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/phrase"
)

func TestRemediesFitThePods(t *testing.T) {
	t.Parallel()
	// inCopy is a command that is executed on a worker of a copy of the job.
	inCopy := func(command string) string {
		return "kubectl odh mpijob clone mpijob/pi -n ns --workers 1 --command " + phrase.QuoteWord(command) + " --logs"
	}
	for name, test := range map[string]struct {
		pod           v1alpha1.PodStatus
		command, want string
	}{
		"log of a pod that is gone":          {v1alpha1.PodStatus{Phase: gone}, "kubectl -n ns logs p", "kubectl odh mpijob logs mpijob/pi -n ns"},
		"log of a pod that failed":           {v1alpha1.PodStatus{Phase: "Failed"}, "kubectl -n ns logs p", "kubectl -n ns logs p"},
		"previous log":                       {v1alpha1.PodStatus{Phase: "Running", Restarts: 1}, "kubectl -n ns logs p --previous", "kubectl -n ns logs p --previous"},
		"previous log without a restart":     {v1alpha1.PodStatus{Phase: "Failed"}, "kubectl -n ns logs p --previous", "kubectl -n ns logs p"},
		"previous log of a pod that is gone": {v1alpha1.PodStatus{Phase: gone, Restarts: 1}, "kubectl -n ns logs p --previous", "kubectl odh mpijob logs mpijob/pi -n ns"},
		"exec in a running pod":              {v1alpha1.PodStatus{Phase: "Running"}, "kubectl -n ns exec p -- ls -l x", "kubectl -n ns exec p -- ls -l x"},
		"exec in a pod that failed":          {v1alpha1.PodStatus{Phase: "Failed"}, "kubectl -n ns exec p -- ls -l x", inCopy("mpirun -n 1 ls -l x")},
		"exec in a pod that is gone":         {v1alpha1.PodStatus{Role: "worker", Phase: gone}, "kubectl -n ns exec p -- sh -c 'ls \"$0\"' x", inCopy(`mpirun -n 1 sh -c 'ls "$0"' x`)},
		"exec in a launcher that is gone":    {v1alpha1.PodStatus{Role: "launcher", Phase: gone}, "kubectl -n ns exec p -- ls -l x", inCopy("ls -l x")},
		"exec of mpirun":                     {v1alpha1.PodStatus{Phase: gone}, "kubectl -n ns exec p -- mpirun --help", inCopy("mpirun --help")},
		"exec of a long command":             {v1alpha1.PodStatus{Phase: gone}, "kubectl -n ns exec p -- ls " + strings.Repeat("x", 500), ""},
		"describe a pod that is gone":        {v1alpha1.PodStatus{Phase: gone}, "kubectl -n ns describe pod p", "kubectl odh mpijob describe mpijob/pi -n ns"},
		"describe a pod that failed":         {v1alpha1.PodStatus{Phase: "Failed"}, "kubectl -n ns describe pod p", "kubectl -n ns describe pod p"},
		"delete a pod that has ended":        {v1alpha1.PodStatus{Phase: "Succeeded"}, "kubectl -n ns delete pod p", ""},
		"another pod":                        {v1alpha1.PodStatus{Phase: gone}, "kubectl -n ns logs other", "kubectl -n ns logs other"},
		"an earlier pod of the job":          {v1alpha1.PodStatus{Phase: "Running"}, "kubectl -n ns logs pi-launcher-x", "kubectl odh mpijob logs mpijob/pi -n ns"},
		"all pods":                           {v1alpha1.PodStatus{Phase: gone}, "kubectl -n ns describe pods -l a=b", "kubectl -n ns describe pods -l a=b"},
		"a field":                            {v1alpha1.PodStatus{Phase: gone}, "spec.slotsPerWorker: 2", "spec.slotsPerWorker: 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.pod.Name = "p"
			previous := []v1alpha1.Remedy{{Text: "Do this.", Action: test.command}}
			report := v1alpha1.JobReport{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns"},
				Spec:       v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{Kind: "MPIJob", Name: "pi"}},
				Status:     v1alpha1.JobReportStatus{Pods: []v1alpha1.PodStatus{test.pod}, Findings: []v1alpha1.Finding{{Remedies: previous}}, MPI: v1alpha1.MPIStatus{Implementation: "OpenMPI"}},
			}
			adaptRemedies(&report, map[string]bool{"p": test.pod.Phase != gone})
			if got := report.Status.Findings[0].Remedies[0].Action; got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
			if previous[0].Action != test.command {
				t.Error("the previous report was changed")
			}
		})
	}
}

// TestRemediesOfProcessesEnd: nobody can look at the processes of a job that has ended.
func TestRemediesOfProcessesEnd(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]struct{ whileRunning, atEnd, whenGone int }{
		"kubectl -n ns exec p -- " + codes.ShowProcesses: {1, 1, 0},
		"kubectl odh mpijob stacks pi -n ns":             {1, 0, 0},
		"kubectl -n ns describe pod p":                   {1, 1, 1},
	} {
		left := func(pod v1alpha1.PodStatus, ended *metav1.Time) int {
			pod.Name = "p"
			report := v1alpha1.JobReport{
				Spec:   v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{Kind: "MPIJob", Name: "pi"}},
				Status: v1alpha1.JobReportStatus{CompletionTime: ended, Pods: []v1alpha1.PodStatus{pod}, Findings: []v1alpha1.Finding{{Remedies: []v1alpha1.Remedy{{Text: "Look.", Action: command}}}}},
			}
			adaptRemedies(&report, map[string]bool{"p": pod.Phase != gone})
			return len(report.Status.Findings[0].Remedies)
		}
		now := metav1.Now()
		running, absent := v1alpha1.PodStatus{Phase: "Running"}, v1alpha1.PodStatus{Phase: gone}
		if a, b, c := left(running, nil), left(running, &now), left(absent, &now); a != want.whileRunning || b != want.atEnd || c != want.whenGone {
			t.Errorf("%s: %d, %d and %d remedies are left, want %+v", command, a, b, c, want)
		}
	}
}
