package jobs_test

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobs"
)

// TestCompareDeletedJobs: what deleted jobs ran is compared by their reports.
func TestCompareDeletedJobs(t *testing.T) {
	deleted := func(image, command string) jobs.Job {
		return jobs.Job{Kind: "MPIJob", Report: &v1alpha1.JobReport{Status: v1alpha1.JobReportStatus{Run: &v1alpha1.Run{
			Image: image, Command: command, Runtime: "mpi-openmpi", Creator: "ada", Limits: corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("2")},
		}}}}
	}
	got := jobs.Compare(deleted("train:1", "mpirun a"), deleted("train:2", "mpirun b"), nil, time.Now()).Run
	for _, want := range []jobs.ComparedValue{
		{Name: "image", A: "train:1", B: "train:2"},
		{Name: "command", A: "mpirun a", B: "mpirun b"},
		{Name: "runtime", A: "mpi-openmpi", B: "mpi-openmpi"},
		{Name: "per worker", A: "nvidia.com/gpu 2", B: "nvidia.com/gpu 2"},
		{Name: "creator", A: "ada", B: "ada"},
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no row %v in %v", want, got)
		}
	}
	// A report from before the field.
	old := jobs.Job{Kind: "MPIJob", Report: &v1alpha1.JobReport{}}
	if old.CommandText() != "" || old.Creator() != "" || old.Summary().Image != "" {
		t.Errorf("of an old report: %q, %q, %+v", old.CommandText(), old.Creator(), old.Summary())
	}
}
