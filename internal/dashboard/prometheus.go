package dashboard

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"opendatahub.io/mpijob/internal/jobs"
)

const (
	// maxSamples is the number of samples of a line in a chart, metricsStep the shortest time between two.
	maxSamples  = 240
	metricsStep = 15 * time.Second
	// maxMetrics limits what is read of a response of Prometheus, in bytes.
	maxMetrics = 8 << 20
	// maxPodNames limits the names of pods in a query, in bytes of its URL: many proxies refuse URLs of more than 8 KiB.
	maxPodNames = 6000
)

// prometheus asks Prometheus, or Thanos, with the token of the user.
type prometheus struct {
	address string
	client  *http.Client
}

// newPrometheus returns the client of a Prometheus; nil without an address. The file with certificates may be empty.
func newPrometheus(address, caFile string) (*prometheus, error) {
	if address == "" {
		return nil, nil //nolint:nilnil // no Prometheus is not an error
	}
	const such = "https://thanos-querier.openshift-monitoring.svc:9092"
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return nil, fmt.Errorf("--prometheus: %s is not a URL; use a value such as %s", address, such)
	}
	if parsed.Scheme != "https" && (parsed.Scheme != "http" || !isLoopback(parsed.Hostname())) {
		return nil, fmt.Errorf("--prometheus: %s is not allowed, because the tokens of users would be sent without encryption; use a value such as %s, or an address of this host", parsed.Redacted(), such)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // it is one
	if caFile != "" {
		pem, err := os.ReadFile(caFile) //nolint:gosec // the administrator names the file
		if err != nil {
			return nil, fmt.Errorf("--prometheus-ca: %w", err)
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("--prometheus-ca: %s contains no certificate", caFile)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	}
	// A redirect could lead to an address without encryption.
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &prometheus{strings.TrimSuffix(address, "/"), &http.Client{Transport: transport, Timeout: 15 * time.Second, CheckRedirect: refuse}}, nil
}

// isLoopback reports whether a host is the one that the program runs on.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// metricQueries are the charts of a job. %s is the selector of its pods.
var metricQueries = []struct{ title, unit, query string }{
	{"CPU", "cores", `sum by (pod) (rate(container_cpu_usage_seconds_total{%s,container!="",container!="POD"}[2m]))`},
	{"Memory", "bytes", `sum by (pod) (container_memory_working_set_bytes{%s,container!="",container!="POD"})`},
	{"GPU utilization", "percent", `avg by (pod) (DCGM_FI_DEV_GPU_UTIL{%s})`},
	{"GPU memory", "bytes", `sum by (pod) (DCGM_FI_DEV_FB_USED{%s}) * 1048576`},
	{"Network, sent", "bytes/s", `sum by (pod) (rate(container_network_transmit_bytes_total{%s}[2m]))`},
	{"Network, received", "bytes/s", `sum by (pod) (rate(container_network_receive_bytes_total{%s}[2m]))`},
	{"Packets, sent", "packets/s", `sum by (pod) (rate(container_network_transmit_packets_total{%s}[2m]))`},
	{"Packets, received", "packets/s", `sum by (pod) (rate(container_network_receive_packets_total{%s}[2m]))`},
}

// charts returns the charts of a job that have samples.
func (p *prometheus) charts(ctx context.Context, token string, job jobs.Job, pods []Pod, now time.Time) ([]Chart, error) {
	start, end := spanOf(job, now)
	selectors := selectorsOf(job.Namespace, pods)
	charts := []Chart{}
	for _, metric := range metricQueries {
		var lines []ChartLine
		for _, selector := range selectors {
			some, err := p.query(ctx, token, job.Namespace, fmt.Sprintf(metric.query, selector), start, end)
			if err != nil {
				return nil, err
			}
			lines = append(lines, some...)
		}
		if len(lines) > 0 {
			slices.SortFunc(lines, func(a, b ChartLine) int { return strings.Compare(a.Name, b.Name) })
			charts = append(charts, Chart{Title: metric.title, Unit: metric.unit, Lines: lines})
		}
	}
	return charts, nil
}

// selectorsOf returns selectors that together select the pods, each of them short enough for a URL.
func selectorsOf(namespace string, pods []Pod) []string {
	var selectors, names []string
	size := 0
	add := func() {
		if len(names) > 0 {
			selectors = append(selectors, fmt.Sprintf("namespace=%s,pod=~%s", strconv.Quote(namespace), strconv.Quote(strings.Join(names, "|"))))
		}
		names, size = nil, 0
	}
	for _, pod := range pods {
		name := regexp.QuoteMeta(pod.Name)
		length := len(url.QueryEscape(strconv.Quote(name + "|")))
		if size+length > maxPodNames {
			add()
		}
		names, size = append(names, name), size+length
	}
	add()
	return selectors
}

// query returns the lines of a query over a time. Thanos on OpenShift requires the namespace as a parameter. It is asked by GET: the proxy
// before it takes the method of HTTP for the verb of RBAC, and users who may view a namespace have only "get pods.metrics.k8s.io".
func (p *prometheus) query(ctx context.Context, token, namespace, query string, start, end time.Time) ([]ChartLine, error) {
	step := max(metricsStep, end.Sub(start)/maxSamples).Round(time.Second)
	parameters := url.Values{
		"query": {query}, "namespace": {namespace}, "step": {strconv.Itoa(int(step.Seconds()))},
		"start": {strconv.FormatInt(start.Unix(), 10)}, "end": {strconv.FormatInt(end.Unix(), 10)},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.address+"/api/v1/query_range?"+parameters.Encode(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := p.client.Do(request)
	if err != nil {
		return nil, errors.New("Prometheus does not answer") //nolint:staticcheck // the name of a program
	}
	defer func() { _ = response.Body.Close() }()
	switch {
	case response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized:
		return nil, errors.New("you may not read the metrics of this namespace in Prometheus")
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("Prometheus answered with status %d", response.StatusCode) //nolint:staticcheck // the name of a program
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Values [][2]any          `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxMetrics)).Decode(&answer); err != nil {
		return nil, errors.New("the response of Prometheus is not valid or too large")
	}
	var lines []ChartLine
	for _, result := range answer.Data.Result {
		line := ChartLine{Name: result.Metric["pod"], Samples: []Sample{}}
		for _, pair := range result.Values {
			at, _ := pair[0].(float64)
			text, _ := pair[1].(string)
			// NaN is not a number that a chart shows.
			if value, err := strconv.ParseFloat(text, 64); err == nil && value == value && value < 1e300 && value > -1e300 { //nolint:gocritic // false for NaN
				line.Samples = append(line.Samples, Sample{int64(at), value})
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// spanOf returns from when to when a job has run.
func spanOf(job jobs.Job, now time.Time) (start, end time.Time) {
	status := job.Status()
	end = now
	if status.CompletionTime != nil {
		end = status.CompletionTime.Time
	}
	start = end.Add(-time.Hour)
	switch {
	case status.StartTime != nil:
		start = status.StartTime.Time
	case job.Object != nil:
		start = job.Object.GetCreationTimestamp().Time
	}
	return start, end
}
