package jobs

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/duration"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
	"opendatahub.io/mpijob/internal/podspec"
)

const (
	// fewestSamples is the number of jobs below which their history advises nothing.
	fewestSamples = 3
	// memoryMargin is what a pod gets beyond the most that was used, in percent.
	memoryMargin = 20
)

// History is what the successful jobs of a namespace ran and used.
type History struct{ runs []pastRun }

// pastRun is a job that succeeded. Figures that were not measured are -1.
type pastRun struct {
	creator, runtime, repository, program string
	workers                               int32
	time                                  time.Duration
	// memory, cpu, gpu and throttled are those of the pod that used most: its maximum in MiB, its 95th percentile in thousandths
	// of a core, its mean in thousandths of a GPU, and the share of time in thousandths in which its CPU limit stopped it.
	memory, cpu, gpu, throttled int64
}

// History returns the jobs that succeeded.
func (p Past) History() History { return historyOf(p.reports) }

func historyOf(reports []v1alpha1.JobReport) (h History) {
	for _, report := range reports {
		status := report.Status
		if status.Run == nil || status.Phase != v1alpha1.PhaseSucceeded {
			continue
		}
		run := pastRun{
			creator: status.Run.Creator, runtime: status.Run.Runtime, repository: repositoryOf(status.Run.Image), program: programOf(status.Run.Command),
			workers: status.Workers.Wanted, time: -1,
			memory:    most(status.Usage, v1alpha1.MetricMemory, func(m v1alpha1.UsageMetric) int64 { return m.Max }),
			cpu:       most(status.Usage, v1alpha1.MetricCPU, func(m v1alpha1.UsageMetric) int64 { return m.P95 }),
			gpu:       most(status.Usage, v1alpha1.MetricGPU, func(m v1alpha1.UsageMetric) int64 { return m.Mean }),
			throttled: most(status.Usage, v1alpha1.MetricThrottled, func(m v1alpha1.UsageMetric) int64 { return m.Mean }),
		}
		if running, ended := status.RunningTime, status.CompletionTime; running != nil && ended != nil {
			run.time = ended.Sub(running.Time)
		}
		h.runs = append(h.runs, run)
	}
	return h
}

// most returns the largest figure of a pod; -1 if none was measured.
func most(usage *v1alpha1.Usage, name v1alpha1.MetricName, figure func(v1alpha1.UsageMetric) int64) int64 {
	value := int64(-1)
	if usage == nil {
		return value
	}
	for _, pod := range usage.PerPod {
		if m := v1alpha1.FindMetric(pod.Metrics, name); m != nil {
			value = max(value, figure(*m))
		}
	}
	return value
}

// Self returns the user's name; empty if the API server does not tell.
func (c *Client) Self(ctx context.Context) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.api.Create(ctx, review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// Advise returns what the earlier jobs of a user with the same program suggest for a job that does not exist yet, a sentence
// each: memory and CPU that it asks for in vain or lacks, GPUs that are not used, and workers that make it no faster. It returns
// nothing if fewer than three such jobs succeeded. With an empty user, those of all users count.
func (h History) Advise(object *unstructured.Unstructured, user string) (advice []string) {
	job := FromObject(object)
	summary := job.Summary()
	size, _ := SizeOf(object)
	program := programOf(phrase.QuoteCommand(summary.Command))
	past := pastRuns{times: map[int32][]time.Duration{}}
	for _, run := range h.runs {
		sameImage := run.runtime == summary.Runtime && (summary.Image == "" || run.repository == repositoryOf(summary.Image))
		if sameImage && run.program == program && (user == "" || run.creator == user) {
			past.add(run)
		}
	}
	asked := podspec.FillIn(summary.Worker.Requests.DeepCopy(), summary.Worker.Limits)
	return slices.DeleteFunc([]string{
		past.memoryAdvice(asked[corev1.ResourceMemory]), past.cpuAdvice(asked[corev1.ResourceCPU]), past.gpuAdvice(podspec.GPUs(summary.Worker)),
		past.workersAdvice(size.Workers),
	}, func(text string) bool { return text == "" })
}

// pastRuns are the figures of the jobs of one program.
type pastRuns struct {
	memory, cpu, gpu []int64
	throttled        int // jobs whose CPU limit stopped a pod for at least 5 % of the time
	times            map[int32][]time.Duration
}

func (p *pastRuns) add(run pastRun) {
	if run.time >= 0 {
		p.times[run.workers] = append(p.times[run.workers], run.time)
	}
	for _, figure := range []struct {
		value int64
		of    *[]int64
	}{{run.memory, &p.memory}, {run.cpu, &p.cpu}, {run.gpu, &p.gpu}} {
		if figure.value >= 0 {
			*figure.of = append(*figure.of, figure.value)
		}
	}
	if run.throttled >= 50 {
		p.throttled++
	}
}

func (p *pastRuns) memoryAdvice(asked resource.Quantity) string {
	if len(p.memory) < fewestSamples {
		return ""
	}
	used := slices.Max(p.memory)
	step := int64(256)
	if used >= 4096 {
		step = 1024
	}
	enough := max(1, (used*(100+memoryMargin)/100+step-1)/step) * step
	askedMiB := asked.Value() >> 20
	said := fmt.Sprintf("Memory: %s like this one used at most %s in a pod", phrase.Count(len(p.memory), "earlier job"), MetricText(v1alpha1.MetricMemory, used))
	switch {
	case askedMiB == 0 || askedMiB < used:
		return fmt.Sprintf("%s; this one asks for %s. Ask for %s.", said, orNone(MetricText(v1alpha1.MetricMemory, askedMiB), askedMiB), mebibytes(enough))
	case askedMiB >= 2*enough && askedMiB-enough >= 1024:
		return fmt.Sprintf("%s; this one asks for %s. %s is enough.", said, MetricText(v1alpha1.MetricMemory, askedMiB), mebibytes(enough))
	}
	return ""
}

func (p *pastRuns) cpuAdvice(asked resource.Quantity) string {
	if len(p.cpu) < fewestSamples {
		return ""
	}
	jobs := phrase.Count(len(p.cpu), "earlier job")
	if 2*p.throttled > len(p.cpu) {
		return fmt.Sprintf("CPU: the limit slowed down %d of %s like this one. Ask for more CPU, or for fewer slots per worker.", p.throttled, jobs)
	}
	used := slices.Max(p.cpu)
	enough := max(1, (used+499)/500) * 500
	if asked.MilliValue() < 2*enough || asked.MilliValue()-enough < 1000 {
		return ""
	}
	return fmt.Sprintf("CPU: %s like this one used at most %s in a pod (95th percentile); this one asks for %s. %s is enough.",
		jobs, MetricText(v1alpha1.MetricCPU, used), MetricText(v1alpha1.MetricCPU, asked.MilliValue()), resource.NewMilliQuantity(enough, resource.DecimalSI))
}

func (p *pastRuns) gpuAdvice(asked int64) string {
	if len(p.gpu) < fewestSamples || asked == 0 || slices.Max(p.gpu) >= 100*asked {
		return ""
	}
	return fmt.Sprintf("GPU: %s like this one used at most %s in a pod on average; this one asks for %d. Check that the program uses them.",
		phrase.Count(len(p.gpu), "earlier job"), MetricText(v1alpha1.MetricGPU, slices.Max(p.gpu)), asked)
}

// workersAdvice reports that fewer workers took hardly longer.
func (p *pastRuns) workersAdvice(asked int32) string {
	mine := p.times[asked]
	if len(mine) < fewestSamples {
		return ""
	}
	best, time := asked, median(mine)
	for workers, times := range p.times {
		if workers > 0 && workers < best && len(times) >= fewestSamples && median(times)*10 <= median(mine)*11 {
			best, time = workers, median(times)
		}
	}
	if best == asked {
		return ""
	}
	return fmt.Sprintf("Workers: earlier jobs took %s with %s and %s with %d (medians of %d and %d jobs). Fewer workers are enough, unless the data has grown.",
		duration.HumanDuration(time), phrase.Count(best, "worker"), duration.HumanDuration(median(mine)), asked, len(p.times[best]), len(mine))
}

func median(times []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[len(sorted)/2]
}

func mebibytes(count int64) *resource.Quantity {
	return resource.NewQuantity(count<<20, resource.BinarySI)
}

func orNone(text string, value int64) string {
	if value == 0 {
		return "none"
	}
	return text
}

// repositoryOf returns an image without its tag and digest.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		image = image[:colon]
	}
	return image
}

// programOf returns what identifies the program of a command: its first two words that are neither options, numbers,
// assignments nor starters of ranks. "mpirun -np 4 python train.py --epochs 3" is "python train.py".
func programOf(command string) string {
	var words []string
	for word := range strings.FieldsFuncSeq(command, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`'";&|`, r) }) {
		base := path.Base(word)
		if strings.HasPrefix(word, "-") || strings.Contains(word, "=") || !strings.ContainsFunc(word, unicode.IsLetter) ||
			slices.Contains(mpi.Launchers, base) || slices.Contains(otherStarters, base) {
			continue
		}
		if words = append(words, base); len(words) == 2 {
			break
		}
	}
	return strings.Join(words, " ")
}

var otherStarters = []string{"sh", "bash", "exec", "env", "deepspeed", "torchrun", "set", "time"}
