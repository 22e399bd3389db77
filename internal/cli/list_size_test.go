package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
)

// TestListReadsLittle: a list sends one request for each kind, however many jobs there are, and reads some hundred bytes for each job,
// although its report has many kilobytes.
func TestListReadsLittle(t *testing.T) {
	if api == nil {
		t.Skip("SKIPPED: KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd")
	}
	const namespace, jobs = "list-size", 20
	createMany(t, namespace, jobs)
	var reports v1alpha1.JobReportList
	if err := api.List(t.Context(), &reports, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	for i := range reports.Items {
		report := &reports.Items[i]
		report.Status.Specification.Manifest = strings.Repeat("# a long comment\n", 1000)
		if err := api.Update(t.Context(), report); err != nil {
			t.Fatal(err)
		}
	}
	to, err := url.Parse(server.Host)
	if err != nil {
		t.Fatal(err)
	}
	transport, err := rest.TransportFor(server)
	if err != nil {
		t.Fatal(err)
	}
	var requests, read atomic.Int64
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport: transport, Rewrite: func(r *httputil.ProxyRequest) {
			requests.Add(1)
			r.SetURL(to)
			r.Out.Header.Set("Accept-Encoding", "identity")
		},
		ModifyResponse: func(response *http.Response) error {
			response.Body = counted{response.Body, &read}
			return nil
		},
	})
	t.Cleanup(proxy.Close)
	config := filepath.Join(t.TempDir(), "kubeconfig")
	if err := writeKubeconfig(config, &rest.Config{Host: proxy.URL}, namespace); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "kubectl-odh-mpijob", "list")
	command.Env = append(os.Environ(), "KUBECONFIG="+config)
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if lines := strings.Count(string(out), "\n"); lines != jobs+1 || strings.Count(string(out), " Succeeded ") != jobs/2 {
		t.Errorf("%d lines were printed for %d jobs: %s", lines, jobs, out)
	}
	if requests.Load() != 3 || read.Load() > jobs*2500 {
		t.Errorf("%d requests read %d bytes, not 3 at most 2,500 for each of %d jobs", requests.Load(), read.Load(), jobs)
	}
}

// counted counts what is read.
type counted struct {
	io.ReadCloser
	read *atomic.Int64
}

func (c counted) Read(into []byte) (int, error) {
	n, err := c.ReadCloser.Read(into)
	c.read.Add(int64(n))
	return n, err
}
