package dashboard

import "time"

// Metrics are charts of what the pods of a job use.
type Metrics struct {
	// Source is Prometheus or metrics.k8s.io; empty without charts.
	Source string  `json:"source,omitempty"`
	Charts []Chart `json:"charts"`
	// Reason is why there are no charts, or only those of the metrics API.
	Reason string `json:"reason,omitempty"`
}

// metrics returns charts of what a job's pods use: from Prometheus, else as it is now from the metrics API, else why not.
func (s *Server) metrics(c *call) (any, error) {
	job, err := c.findOrUID()
	if err != nil {
		return nil, err
	}
	listed, err := s.pods(c)
	if err != nil {
		return nil, err
	}
	found, _ := listed.(Pods)
	reason := "The dashboard has no Prometheus (flag --prometheus)"
	if s.prometheus != nil {
		credential, _ := credentialOf(c.Request, s.options.TrustProxy)
		charts, err := s.prometheus.charts(c.ctx, credential.token, job, found.Pods, s.now())
		if err == nil {
			return Metrics{Source: "Prometheus", Charts: aggregate(charts)}, nil
		}
		reason = err.Error()
	}
	if found.NoUsage == "" && job.Object != nil && !job.Ended() {
		if charts := currentCharts(found.Pods, s.now()); len(charts) > 0 {
			return Metrics{Source: "metrics.k8s.io", Reason: reason + ". The current usage is shown, from when this page was opened.", Charts: aggregate(charts)}, nil
		}
		found.NoUsage = "The metrics API (metrics.k8s.io) has no figures for these pods yet."
	}
	if found.NoUsage == "" {
		found.NoUsage = "The metrics API only has figures while pods run."
	}
	return Metrics{Reason: reason + ". " + found.NoUsage, Charts: []Chart{}}, nil
}

// currentCharts returns charts with one sample per pod.
func currentCharts(pods []Pod, now time.Time) []Chart {
	cpu, memory := Chart{Title: "CPU", Unit: "cores"}, Chart{Title: "Memory", Unit: "bytes"}
	for _, pod := range pods {
		if pod.CPU != nil && pod.Memory != nil {
			cpu.Lines = append(cpu.Lines, ChartLine{pod.Name, []Sample{{now.Unix(), *pod.CPU}}})
			memory.Lines = append(memory.Lines, ChartLine{pod.Name, []Sample{{now.Unix(), float64(*pod.Memory)}}})
		}
	}
	if len(cpu.Lines) == 0 {
		return nil
	}
	return []Chart{cpu, memory}
}
