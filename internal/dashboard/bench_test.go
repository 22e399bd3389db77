package dashboard_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/internal/logstream/podserver"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/web"
)

// TestBench measures the dashboard, as a process of its own, in Chromium: web/test/bench.mjs has the cases. `make bench
// SUITE=dashboard` runs it; DASHBOARD names the program, DASHBOARD_BENCH the file of the results.
func TestBench(t *testing.T) {
	program, file := os.Getenv("DASHBOARD"), os.Getenv("DASHBOARD_BENCH")
	if program == "" || file == "" {
		t.Skip("SKIPPED: DASHBOARD and DASHBOARD_BENCH name no program and no file; `make bench SUITE=dashboard` does")
	}
	needsServer(t)
	b := &bench{token: namespace(t, "bench", "user")["user"], folder: t.TempDir(), flood: startFlood(t)}
	b.start(t, program)
	control := httptest.NewServer(b)
	t.Cleanup(control.Close)
	command := exec.CommandContext(t.Context(), "node", "test/bench.mjs")
	command.Dir = "../../web"
	command.Env = append(os.Environ(), "DASHBOARD_URL="+b.url, "DASHBOARD_TOKENS="+fmt.Sprintf(`{"user":%q}`, b.token), "BENCH_CONTROL="+control.URL, "BENCH_FILE="+file)
	command.Stdout, command.Stderr = t.Output(), t.Output()
	must(t, command.Run())
}

// bench changes the cluster for bench.mjs, and measures what happens outside of the browser. It is the handler of these requests:
//
//	grow?to=N     creates jobs until there are N, and waits until the server lists them
//	change?job=I&mark=M   sets the number of workers in the report of a job
//	memory        returns the resident memory of the server in MiB
//	tabs?n=N      holds the streams of N tabs, and returns the time from a change to the last of them, and the memory of a tab
//	kubectl?n=N   returns the times from changes to the lines of kubectl get --watch
//	flood         returns where 64 pods write 50,000 lines a second as soon as a page reads them
type bench struct {
	token, folder, url string
	flood              flood
	pid                int

	mu   sync.Mutex
	jobs int
}

// start runs the dashboard with the rights of its account until the test ends.
func (b *bench) start(t *testing.T, program string) {
	t.Helper()
	kubeconfig := filepath.Join(b.folder, "kubeconfig")
	must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		CurrentContext: "bench", Contexts: map[string]*clientcmdapi.Context{"bench": {Cluster: "bench", AuthInfo: "bench"}},
		Clusters:  map[string]*clientcmdapi.Cluster{"bench": {Server: config.Host, CertificateAuthorityData: config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"bench": {Token: ownToken}},
	}, kubeconfig))
	command := exec.CommandContext(t.Context(), program, "--listen", "127.0.0.1:0", "--max-streams-per-user", "1000")
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	log, err := command.StderrPipe()
	must(t, err)
	must(t, command.Start())
	t.Cleanup(func() { _ = command.Process.Kill(); _ = command.Wait() })
	b.pid = command.Process.Pid
	lines := bufio.NewScanner(log)
	address := regexp.MustCompile(`"msg":"serving","address":"([^"]+)"`)
	for lines.Scan() {
		if found := address.FindStringSubmatch(lines.Text()); found != nil {
			b.url = "http://" + found[1]
			// The log is read to its end, so that the dashboard can write it.
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return
		}
	}
	t.Fatalf("%s does not serve: %v", program, lines.Err())
}

func (b *bench) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	number := func(name string) int {
		n, _ := strconv.Atoi(r.URL.Query().Get(name))
		return n
	}
	var result any = struct{}{}
	var err error
	switch r.URL.Path {
	case "/grow":
		err = b.grow(r.Context(), number("to"))
	case "/change":
		err = b.change(r.Context(), number("job"), number("mark"))
	case "/memory":
		result, err = b.memory()
	case "/tabs":
		result, err = b.tabs(r.Context(), number("n"))
	case "/flood":
		result = b.flood
	case "/kubectl":
		result, err = b.kubectl(r.Context(), number("n"))
	default:
		err = fmt.Errorf("there is no %s", r.URL.Path)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_ = json.NewEncoder(w).Encode(result)
}

func benchJob(i int) string { return fmt.Sprintf("job-%05d", i) }

// grow creates jobs with their reports until there are as many.
func (b *bench) grow(ctx context.Context, to int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all sync.WaitGroup
	var failed error
	var once sync.Once
	next := make(chan int)
	for range 8 {
		all.Go(func() {
			for i := range next {
				if err := createReported(ctx, i); err != nil {
					once.Do(func() { failed = err })
				}
			}
		})
	}
	for ; b.jobs < to; b.jobs++ {
		next <- b.jobs
	}
	close(next)
	all.Wait()
	for deadline := time.Now().Add(2 * time.Minute); failed == nil; {
		var list dashboard.List
		if err := b.get(ctx, "jobs?size=1&phase=Running", &list); err != nil {
			return err
		}
		if list.Total >= to {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the server lists %d of %d jobs after two minutes", list.Total, to)
		}
		time.Sleep(50 * time.Millisecond)
	}
	return failed
}

// createReported creates a running job with its report.
func createReported(ctx context.Context, i int) error {
	pod := corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "quay.io/team/train:1.2", Command: []string{"python", "train.py"}}}}}
	job := &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: benchJob(i)}}
	job.Spec.MPIReplicaSpecs = map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
		kubeflow.MPIReplicaTypeLauncher: {Template: pod}, kubeflow.MPIReplicaTypeWorker: {Replicas: new(int32(4)), Template: pod},
	}
	if err := api.Create(ctx, job); err != nil {
		return err
	}
	now := metav1.Now()
	return api.Create(ctx, &v1alpha1.JobReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: "bench", Name: benchJob(i)},
		Spec:       v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: job.Name, UID: job.UID}},
		Status: v1alpha1.JobReportStatus{
			Phase: v1alpha1.PhaseRunning, Message: "4 of 4 workers running, launcher running.", MPI: v1alpha1.MPIStatus{Implementation: "OpenMPI", SlotsPerWorker: 1},
			Workers: v1alpha1.WorkersStatus{Wanted: 4, Ready: 4, Running: 4}, StartTime: &now, RunningTime: &now,
		},
	})
}

// change sets the number of workers in the report of a job, by which pages and streams recognize the change.
func (b *bench) change(ctx context.Context, job, mark int) error {
	var report v1alpha1.JobReport
	if err := api.Get(ctx, client.ObjectKey{Namespace: "bench", Name: benchJob(job)}, &report); err != nil {
		return err
	}
	report.Status.Workers.Wanted = int32(mark)
	return api.Update(ctx, &report)
}

// memory returns the resident memory of the server.
func (b *bench) memory() (map[string]float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.pid))
	if err != nil {
		return nil, err
	}
	found := regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return nil, fmt.Errorf("process %d has no memory", b.pid)
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	return map[string]float64{"MiB": kib / 1024}, err
}

// request sends a request to the server as the user.
func (b *bench) request(ctx context.Context, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+"/api/v1/"+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+b.token)
	response, err := http.DefaultClient.Do(request)
	if err == nil && response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		err = fmt.Errorf("GET %s: %s", path, response.Status)
	}
	return response, err
}

func (b *bench) get(ctx context.Context, path string, into any) error {
	response, err := b.request(ctx, path)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return json.NewDecoder(response.Body).Decode(into)
}

// benchChanges is how many changes are measured; the first is not, because it opens connections.
const benchChanges = 20

// tabs loads the list as many tabs do, keeps their streams open, and changes jobs.
func (b *bench) tabs(ctx context.Context, n int) (map[string]float64, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	before, err := b.memory()
	if err != nil {
		return nil, err
	}
	// seen has an entry for each mark that a tab received.
	seen, failed := make(chan int, n*benchChanges), make(chan error, n)
	var ready sync.WaitGroup
	for range n {
		ready.Add(1)
		go func() {
			var list dashboard.List
			err := b.get(ctx, "jobs?size=20", &list)
			var response *http.Response
			if err == nil {
				response, err = b.request(ctx, "jobs/stream?cursor="+list.Cursor) //nolint:bodyclose // closed below
			}
			ready.Done()
			if err != nil {
				failed <- err
				return
			}
			defer func() { _ = response.Body.Close() }()
			lines := bufio.NewScanner(response.Body)
			lines.Buffer(nil, 1<<20)
			mark := regexp.MustCompile(`"workers":(\d{7})`)
			for lines.Scan() {
				for _, found := range mark.FindAllSubmatch(lines.Bytes(), -1) {
					number, _ := strconv.Atoi(string(found[1]))
					seen <- number
				}
			}
		}()
	}
	ready.Wait()
	var took []float64
	for i := range benchChanges + 1 {
		mark := 2_000_000 + i
		began := time.Now()
		if err := b.change(ctx, 0, mark); err != nil {
			return nil, err
		}
		for got := 0; got < n; {
			select {
			case number := <-seen:
				if number == mark {
					got++
				}
			case err := <-failed:
				return nil, err
			case <-time.After(30 * time.Second):
				return nil, fmt.Errorf("%d of %d tabs received a change after 30 s", got, n)
			}
		}
		if i > 0 {
			took = append(took, time.Since(began).Seconds())
		}
	}
	after, err := b.memory()
	if err != nil {
		return nil, err
	}
	slices.Sort(took)
	return map[string]float64{"p95": took[len(took)*95/100], "MiB": max(0, after["MiB"]-before["MiB"]) / float64(n)}, nil
}

// kubectl returns the time from a change to the line of kubectl get --watch, the 95th percentile.
func (b *bench) kubectl(ctx context.Context, n int) (map[string]float64, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	authority := filepath.Join(b.folder, "ca.crt")
	if err := os.WriteFile(authority, config.CAData, 0o600); err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl"), "--kubeconfig", os.DevNull, "--server", config.Host, "--certificate-authority", authority,
		"--token", b.token, "-n", "bench", "get", "jobreports", "--watch", "--no-headers", "-o", "custom-columns=W:.status.workers.wanted")
	var problems bytes.Buffer
	command.Stderr = &problems
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	defer func() { stop(); _ = command.Wait() }()
	printed := make(chan string, 100_000)
	go func() {
		defer close(printed)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			printed <- strings.TrimSpace(lines.Text())
		}
	}()
	var took []float64
	for i := range n + 1 {
		mark := 3_000_000 + i
		began := time.Now()
		if err := b.change(ctx, 1, mark); err != nil {
			return nil, err
		}
		for line := ""; line != strconv.Itoa(mark); {
			var open bool
			select {
			case line, open = <-printed:
				if !open {
					return nil, fmt.Errorf("kubectl has ended: %s", problems.String())
				}
			case <-time.After(30 * time.Second):
				return nil, fmt.Errorf("kubectl prints no change after 30 s: %s", problems.String())
			}
		}
		if i > 0 {
			took = append(took, time.Since(began).Seconds())
		}
	}
	slices.Sort(took)
	return map[string]float64{"p95": took[len(took)*95/100]}, nil
}

// flood is a job whose pods write many lines.
type flood struct {
	// URL is the address of a dashboard, Token a login, and Path the page of the log.
	URL   string `json:"url"`
	Token string `json:"token"`
	Path  string `json:"path"`
	// Lines are how many lines all pods write in Seconds.
	Lines   int `json:"lines"`
	Seconds int `json:"seconds"`
}

// startFlood starts a dashboard on the API server, of which the pods of one namespace are simulated.
func startFlood(t *testing.T) flood {
	t.Helper()
	const pods, perSecond, seconds, name = 64, 782, 6, "flood"
	token := namespace(t, name, "user")["user"]
	job := mpiJob(t, name, name, nil)
	simulated := podserver.New(t)
	for i := range pods {
		pod := fmt.Sprintf("%s-worker-%d", name, i)
		simulated.Put(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: pod, Namespace: name, UID: types.UID(pod), CreationTimestamp: metav1.Now(), OwnerReferences: []metav1.OwnerReference{{Kind: "MPIJob", Name: name, UID: job.UID, Controller: new(true)}}, Labels: map[string]string{
				mpi.LabelOperator: mpi.OperatorName, mpi.LabelJob: name, mpi.LabelRole: "worker", mpi.LabelIndex: strconv.Itoa(i),
			}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}},
			Status: corev1.PodStatus{Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
				{Name: "main", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.Now()}}},
			}},
		})
		const batch = perSecond / 20
		written := new(atomic.Int64)
		simulated.Log(pod, false).Source = func(done <-chan struct{}) []byte {
			select {
			case <-time.After(time.Second * batch / perSecond):
			case <-done:
				return nil
			}
			var text []byte
			for range batch {
				n := written.Add(1)
				if n > perSecond*seconds {
					break
				}
				text = time.Now().UTC().AppendFormat(text, time.RFC3339Nano)
				text = fmt.Appendf(text, " epoch=3 step=%d loss=0.5123 throughput=1810 images/s\n", n)
			}
			return text
		}
	}
	forward := func(config *rest.Config) http.Handler {
		to, err := url.Parse(config.Host)
		must(t, err)
		transport, err := rest.TransportFor(config)
		must(t, err)
		return &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1}
	}
	toPods, toServer := forward(simulated.Config()), forward(rest.AnonymousClientConfig(config))
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/"+name+"/pods") {
			toPods.ServeHTTP(w, r)
			return
		}
		toServer.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	server, err := dashboard.New(&rest.Config{Host: front.URL, BearerToken: ownToken, QPS: -1}, dashboard.Options{Assets: web.Assets()}, time.Now)
	must(t, err)
	server.Watch(t.Context())
	pages := httptest.NewServer(server.Handler())
	t.Cleanup(pages.Close)
	return flood{URL: pages.URL, Token: token, Path: "/projects/" + name + "/mpijob/" + name + "?tab=logs", Lines: pods * perSecond * seconds, Seconds: seconds}
}
