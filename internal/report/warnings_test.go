package report_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/report"
)

// find makes a record with given findings.
func (h *history) find(after time.Duration, seen jobstate.Observed, findings ...v1alpha1.Finding) {
	h.t.Helper()
	seen.Now = h.last.Status.StartTime.Add(after)
	next := report.Make(h.job, seen, jobstate.Evidence{}, jobstate.Judge(h.job, seen), findings, h.last)
	h.last = &next
}

// TestWarningsBegin: each warning of a running job of either kind is entered once when it begins, also if it is not the first finding.
func TestWarningsBegin(t *testing.T) {
	t.Parallel()
	finding := func(code, summary string, pods ...string) v1alpha1.Finding {
		entry := codes.Lookup(code)
		return v1alpha1.Finding{Code: code, Severity: entry.Severity, Summary: summary, Affected: pods}
	}
	idle, deadline := finding(codes.RanksIdle, "All idle."), finding(codes.DeadlineNear, "It ends at 10:00.")
	first := func(code codes.Code) []v1alpha1.Finding { return []v1alpha1.Finding{finding(code, code)} }
	second := func(f v1alpha1.Finding) []v1alpha1.Finding { return []v1alpha1.Finding{idle, f} }
	tests := map[string]struct {
		passes [][]v1alpha1.Finding
		want   []string
	}{
		"second":              {[][]v1alpha1.Finding{{idle}, {idle, deadline}, {idle, deadline}}, []string{"RanksIdle All idle.", "DeadlineNear It ends at 10:00."}},
		"both at once":        {[][]v1alpha1.Finding{{idle, deadline}}, []string{"RanksIdle All idle.", "DeadlineNear It ends at 10:00."}},
		"the first one ends":  {[][]v1alpha1.Finding{{idle, deadline}, {deadline}}, []string{"RanksIdle All idle.", "DeadlineNear It ends at 10:00."}},
		"its figures change":  {[][]v1alpha1.Finding{second(finding(codes.MemoryGrowing, "1 GiB", "a")), second(finding(codes.MemoryGrowing, "2 GiB", "a"))}, []string{"RanksIdle All idle.", "MemoryGrowing 1 GiB"}},
		"of the first, too":   {[][]v1alpha1.Finding{{finding(codes.MemoryGrowing, "1 GiB", "a")}, {finding(codes.MemoryGrowing, "2 GiB", "a")}}, []string{"MemoryGrowing 1 GiB"}},
		"another pod":         {[][]v1alpha1.Finding{second(finding(codes.GPUIdle, "Of a.", "a")), second(finding(codes.GPUIdle, "Of a and b.", "a", "b")), second(finding(codes.GPUIdle, "Of b.", "b"))}, []string{"RanksIdle All idle.", "GPUIdle Of a.", "GPUIdle Of a and b."}},
		"it begins again":     {[][]v1alpha1.Finding{second(finding(codes.CPUThrottled, "20 %")), {idle}, second(finding(codes.CPUThrottled, "30 %"))}, []string{"RanksIdle All idle.", "CPUThrottled 20 %", "CPUThrottled 30 %"}},
		"a failed rank":       {[][]v1alpha1.Finding{{finding(codes.ClockSkew, "Clocks.")}, {finding(codes.ClockSkew, "Clocks."), finding(codes.RankGone, "Rank 1 failed.")}}, []string{"ClockSkew Clocks.", "RankGone Rank 1 failed."}},
		"a consequence":       {[][]v1alpha1.Finding{second(finding(codes.SlowStart, "Slow."))}, []string{"RanksIdle All idle."}},
		"a first obstacle":    {[][]v1alpha1.Finding{{finding(codes.InsufficientResources, "2 nodes")}, {finding(codes.InsufficientResources, "3 nodes")}}, []string{"InsufficientResources 2 nodes", "InsufficientResources 3 nodes"}},
		"each warning second": {},
	}
	for _, kind := range []string{mpi.KindMPIJob, mpi.KindTrainJob} {
		for name, test := range tests {
			h := &history{t: t, job: job(1, func(j *mpi.Job) { j.Kind = kind })}
			running := pods(h.job, corev1.PodRunning, 0)
			h.pass(0, running, jobstate.Evidence{})
			if name == "each warning second" {
				for _, entry := range codes.Entries() {
					if codes.Has(entry.Code, codes.Warns) && entry.Code != codes.RanksIdle {
						test.passes, test.want = append(test.passes, second(first(entry.Code)[0])), append(test.want, entry.Code+" "+entry.Code)
					}
				}
				test.want = slices.Insert(test.want, 0, "RanksIdle All idle.")
			}
			var entered []string
			for _, entry := range codes.Entries() {
				if entry.IsFinding() {
					entered = append(entered, entry.Code)
				}
			}
			for i, findings := range test.passes {
				h.find(time.Duration(i+1)*time.Minute, running, findings...)
			}
			if diff := cmp.Diff(test.want, h.said(entered...)); diff != "" {
				t.Errorf("%s, %s: (-want +got)\n%s", kind, name, diff)
			}
		}
	}
}

// TestWarningsAreBounded: a warning that comes and goes leaves room for what else happens, and further ones at the end of a job are no beginnings.
func TestWarningsAreBounded(t *testing.T) {
	t.Parallel()
	h := &history{t: t, job: job(1)}
	running := pods(h.job, corev1.PodRunning, 0)
	h.pass(0, running, jobstate.Evidence{})
	throttled := func(i int) v1alpha1.Finding {
		return v1alpha1.Finding{Code: codes.CPUThrottled, Severity: v1alpha1.SeverityWarning, Summary: fmt.Sprintf("%d %%", i)}
	}
	for i := range 100 {
		h.find(time.Duration(2*i+1)*time.Minute, running, throttled(i))
		h.find(time.Duration(2*i+2)*time.Minute, running)
	}
	if got := len(h.said(codes.CPUThrottled)); got != 8 {
		t.Errorf("a warning that comes and goes was entered %d times", got)
	}
	over := ended(running, h.job, batchv1.JobFailed, 5*time.Hour)
	h.find(6*time.Hour, over, v1alpha1.Finding{Code: codes.OutOfMemory, Severity: v1alpha1.SeverityError, Summary: "Too little."}, v1alpha1.Finding{Code: codes.MemoryGrowing, Severity: v1alpha1.SeverityInfo, Summary: "It grew."})
	if got := h.said(codes.OutOfMemory, codes.MemoryGrowing); !slices.Equal(got, []string{"OutOfMemory Too little."}) {
		t.Errorf("at the end it entered %q", got)
	}
}

// TestNotices: a notice is no warning event, and what else was found of a job that failed stays one.
func TestNotices(t *testing.T) {
	t.Parallel()
	with := func(phase v1alpha1.Phase, code string, severity v1alpha1.Severity) v1alpha1.JobReportStatus {
		return v1alpha1.JobReportStatus{Phase: phase, Findings: []v1alpha1.Finding{{Code: codes.ClockSkew, Severity: v1alpha1.SeverityWarning}, {Code: code, Severity: severity}}}
	}
	const running, failed = v1alpha1.PhaseRunning, v1alpha1.PhaseFailed
	for name, test := range map[string]struct {
		event  string
		status v1alpha1.JobReportStatus
		want   bool
	}{
		"a notice":                   {codes.RanksIdle, with(running, codes.RanksIdle, v1alpha1.SeverityInfo), false},
		"a notice with an error":     {codes.RanksIdle, with(running, codes.RanksIdle, v1alpha1.SeverityWarning), true},
		"a warning as a notice":      {codes.RanksWaiting, with(running, codes.RanksWaiting, v1alpha1.SeverityInfo), false},
		"a warning":                  {codes.DeadlineNear, with(running, codes.DeadlineNear, v1alpha1.SeverityWarning), true},
		"an error":                   {codes.OutOfMemory, with(failed, codes.OutOfMemory, v1alpha1.SeverityError), true},
		"a loss in a failed job":     {codes.Evicted, with(failed, codes.Evicted, v1alpha1.SeverityInfo), true},
		"a notice that was left out": {codes.NodeCordoned, v1alpha1.JobReportStatus{Phase: running}, false},
		"a step":                     {codes.PodsPlaced, v1alpha1.JobReportStatus{Phase: running}, false},
		"a failure":                  {string(failed), v1alpha1.JobReportStatus{Phase: failed}, true},
		"a restart":                  {codes.LauncherRestarted, v1alpha1.JobReportStatus{Phase: running}, true},
	} {
		entry := v1alpha1.TimelineEntry{Event: test.event, Time: metav1.Now()}
		if got := report.IsWarning(entry, test.status); got != test.want {
			t.Errorf("%s: it is a warning: %t", name, got)
		}
	}
}
