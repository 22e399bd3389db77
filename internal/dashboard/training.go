package dashboard

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/logs"
	"opendatahub.io/mpijob/internal/logstream"
)

// Curves are what a program printed about its training.
type Curves struct {
	Points []CurvePoint `json:"points"`
	// Skipped is the number of points between those that are shown.
	Skipped int `json:"skipped"`
	// Reason is why there are no points, Note what else to know about them.
	Reason string `json:"reason,omitempty"`
	Note   string `json:"note,omitempty"`
}

// CurvePoint is a line of the log with a loss, an accuracy or other figures. An accuracy in percent is between 0 and 1.
type CurvePoint struct {
	Time     string   `json:"time,omitempty"`
	Step     *float64 `json:"step,omitempty"`
	Epoch    *float64 `json:"epoch,omitempty"`
	Loss     *float64 `json:"loss,omitempty"`
	Accuracy *float64 `json:"accuracy,omitempty"`
	// Figures are what else the program printed about its speed and its communication, by their names, such as throughput,
	// bandwidth_gbps, latency_us or message_rate.
	Figures map[string]float64 `json:"figures,omitempty"`
	// NotANumber is set if the program printed NaN or infinity.
	NotANumber bool `json:"notANumber,omitempty"`
}

const (
	// maxPoints is the maximum number of points of a curve. Of a longer one, evenly distributed points are shown.
	maxPoints = 2000
	// curveTimeout limits how long the log is read for the curves.
	curveTimeout = 20 * time.Second
)

// curves returns what the program of a job printed about its training, by step or epoch: the loss, the accuracy, and figures
// about speed and communication.
func (s *Server) curves(c *call) (any, error) {
	job, err := c.findOrUID()
	if err != nil {
		return nil, err
	}
	found := Curves{Points: []CurvePoint{}}
	points := &sampler{stride: 1}
	read := func(lines []logstream.Line) error {
		for _, line := range lines {
			points.line(line)
		}
		return nil
	}
	options := logstream.Options{Selector: labels.Set(job.PodLabels()).String(), Place: c.jobs.OwnPlace(c.ctx, job), Hosts: job.Hosts()}
	s.bound(c, &options)
	if job.Status().MPI.Implementation == "" {
		// Without a launcher, the first worker prints for all.
		if options.Filter.Workers, err = logstream.ParseSet("0"); err != nil {
			return nil, err
		}
	}
	if job.Object != nil {
		if allowed, err := c.may(c.ctx, "get", corev1.Resource("pods/log"), job.Namespace); err != nil || !allowed {
			return found.because("You may not read the logs of pods in this namespace; ask for the role view."), err
		}
		ctx, cancel := context.WithTimeout(c.ctx, curveTimeout)
		defer cancel()
		live := options
		// The launcher's log has the output of all ranks.
		live.Filter.Launcher = job.Status().MPI.Implementation != ""
		_, err := logstream.Run(ctx, c.logs.Pods(job.Namespace), live, read)
		switch {
		case errors.Is(err, context.DeadlineExceeded) && c.ctx.Err() == nil:
			found.Note = "The log is long: only its first part was read."
		case err != nil:
			return nil, err
		}
	}
	if len(points.all) == 0 {
		if err := read(job.KeptLogs().Recall(options)); err != nil {
			return nil, err
		}
		if len(points.all) > 0 {
			found.Note = "The pods are deleted. These are the figures in the last log lines of the job's report."
		}
	}
	found.Points, found.Skipped = orEmpty(points.points()), points.skipped()
	if len(found.Points) == 0 {
		return found.because("The program printed no loss and no accuracy. Lines such as these are read: epoch=3 step=1200 loss=0.41 accuracy=0.87 throughput=512 latency_us=1.8, or a JSON object with these names."), nil
	}
	return found, nil
}

// because returns curves without points and the reason.
func (c Curves) because(reason string) Curves {
	c.Reason = reason
	return c
}

// sampler keeps evenly distributed points of a curve of unknown length, and always the last one.
type sampler struct {
	all    []CurvePoint
	last   CurvePoint
	seen   int
	stride int
	epoch  *float64
}

func (s *sampler) line(line logstream.Line) {
	if line.Rank > 0 {
		return // each rank prints the same figures
	}
	training, found := logs.ParseTraining(line.Text)
	figures := logs.ParseFigures(line.Text)
	if !found && figures == nil {
		return
	}
	point := curvePoint(training)
	point.Figures = figures
	s.epoch = cmp.Or(point.Epoch, s.epoch)
	if point.Loss == nil && point.Accuracy == nil && !point.NotANumber && figures == nil {
		return
	}
	point.Epoch = s.epoch
	if !line.Time.IsZero() {
		point.Time = line.Time.UTC().Format(time.RFC3339)
	}
	s.last = point
	if s.seen%s.stride == 0 {
		if len(s.all) == maxPoints {
			s.stride *= 2
			for i := range maxPoints / 2 {
				s.all[i] = s.all[2*i]
			}
			s.all = s.all[:maxPoints/2]
		}
		if s.seen%s.stride == 0 {
			s.all = append(s.all, point)
		}
	}
	s.seen++
}

func (s *sampler) points() []CurvePoint {
	if s.seen > 0 && (s.seen-1)%s.stride != 0 {
		return append(slices.Clone(s.all), s.last)
	}
	return s.all
}

// skipped returns how many points are not shown.
func (s *sampler) skipped() int { return s.seen - len(s.points()) }

// curvePoint returns the numbers of what a program printed. Epochs such as 3/10 count by their first number.
func curvePoint(t v1alpha1.Training) CurvePoint {
	var p CurvePoint
	number := func(text string) *float64 {
		text, isShare := strings.CutSuffix(strings.ReplaceAll(text, ",", ""), "%")
		text, _, _ = strings.Cut(text, "/")
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || text == "" {
			return nil
		}
		if math.IsNaN(value) || math.IsInf(value, 0) {
			p.NotANumber = true
			return nil
		}
		if isShare {
			value /= 100
		}
		return &value
	}
	p.Step, p.Epoch, p.Loss, p.Accuracy = number(t.Step), number(t.Epoch), number(t.Loss), number(t.Accuracy)
	return p
}
