package dashboard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/dashboard"
	"opendatahub.io/mpijob/web"
)

// The tests run the server against a real API server with our CRDs and those of the command line's tests, with the rights of
// config/dashboard. There is no operator: tests write the JobReports that it would write.

var (
	// api acts as the administrator; nil where there is no API server to run.
	api    client.Client
	config *rest.Config
	// address is that of a server with the pages, token the server's own.
	address, ownToken string
)

func TestMain(m *testing.M) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		os.Exit(m.Run())
	}
	code, err := withServer(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prepare the tests:", err)
		code = 1
	}
	os.Exit(code)
}

func withServer(m *testing.M) (int, error) {
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})))
	ctrl.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	folder := filepath.Join("..", "..", "config")
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{
			filepath.Join(folder, "crd", "kubeflow.org_mpijobs.yaml"), filepath.Join(folder, "crd", "mpi.opendatahub.io_jobreports.yaml"),
			filepath.Join(folder, "crd", "mpi.opendatahub.io_runtimetests.yaml"), filepath.Join("..", "cli", "testdata", "crds.yaml"),
			filepath.Join("..", "operator", "testdata", "clusterresourcequotas.yaml"), filepath.Join("testdata", "appliedclusterresourcequotas.yaml"),
		},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute,
	}
	var err error
	if config, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("start kube-apiserver and etcd: %w", err)
	}
	defer func() { _ = environment.Stop() }()
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return 1, err
	}
	if api, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	if err := api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mpijob-system"}}); err != nil {
		return 1, err
	}
	for file, namespace := range map[string]string{filepath.Join(folder, "rbac", "users.yaml"): "", filepath.Join(folder, "dashboard", "base", "rbac.yaml"): "mpijob-system"} {
		if err := createAll(ctx, file, namespace); err != nil {
			return 1, err
		}
	}
	if ownToken, err = tokenOf(ctx, "mpijob-system", "mpijob-dashboard"); err != nil {
		return 1, err
	}
	server, err := newServer(dashboard.Options{Assets: web.Assets()})
	if err != nil {
		return 1, err
	}
	server.Watch(ctx)
	listening := httptest.NewServer(server.Handler())
	defer listening.Close()
	address = listening.URL
	for deadline := time.Now().Add(30 * time.Second); ; {
		response, err := http.Get(address + "/readyz")
		if err != nil {
			return 1, err
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			return 1, errors.New("the server is not ready after 30 s")
		}
	}
	return m.Run(), nil
}

// newServer returns a server with the account of config/dashboard.
func newServer(options dashboard.Options) (*dashboard.Server, error) {
	own := rest.AnonymousClientConfig(config)
	own.BearerToken = ownToken
	return dashboard.New(own, options, time.Now)
}

// createAll creates the objects of a file, those of a namespace in a given one.
func createAll(ctx context.Context, file, namespace string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if object.GetKind() == "ServiceAccount" {
			object.SetNamespace(namespace)
		}
		if err := api.Create(ctx, &object); err != nil {
			return err
		}
	}
}

func tokenOf(ctx context.Context, namespace, name string) (string, error) {
	request := &authenticationv1.TokenRequest{}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	err := api.SubResource("token").Create(ctx, account, request)
	return request.Status.Token, err
}

// namespace creates a namespace with an account for each role, and returns their tokens by role. The roles of clusters are
// aggregated by a controller, so that the roles of jobs are bound here, with the rights of view that pages need.
func namespace(t *testing.T, name string, roles ...string) map[string]string {
	t.Helper()
	ctx := t.Context()
	must(t, api.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	base := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods", "pods/log", "events", "resourcequotas", "configmaps"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"trainer.kubeflow.org"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		{APIGroups: []string{"kueue.x-k8s.io"}, Resources: []string{"*"}, Verbs: []string{"get", "list", "watch"}},
		// As OpenShift's roles of a project.
		{APIGroups: []string{"quota.openshift.io"}, Resources: []string{"appliedclusterresourcequotas"}, Verbs: []string{"get", "list", "watch"}},
	}
	must(t, api.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "base"}, Rules: base}))
	tokens := map[string]string{}
	for _, role := range roles {
		must(t, api.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: role}}))
		if role != "nobody" {
			for kind, to := range map[string]string{"Role": "base", "ClusterRole": "mpijob-" + role} {
				must(t, api.Create(ctx, &rbacv1.RoleBinding{
					ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: role + "-" + to}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: to},
					Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: name, Name: role}},
				}))
			}
		}
		token, err := tokenOf(ctx, name, role)
		must(t, err)
		tokens[role] = token
	}
	return tokens
}

// administrator returns the token of an account of a namespace that may do everything.
func administrator(t *testing.T, namespace string) string {
	t.Helper()
	must(t, api.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "administrator"}}))
	must(t, api.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace + "-administrator"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "administrator"}},
	}))
	token, err := tokenOf(t.Context(), namespace, "administrator")
	must(t, err)
	return token
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func needsServer(t *testing.T) {
	t.Helper()
	if api == nil {
		t.Skip("SKIPPED: KUBEBUILDER_ASSETS names no kube-apiserver and etcd; `make unit` does")
	}
}

// mpiJob creates an MPIJob.
func mpiJob(t *testing.T, namespace, name string, edit func(*kubeflow.MPIJob)) *kubeflow.MPIJob {
	t.Helper()
	job := &kubeflow.MPIJob{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	container := corev1.Container{Name: "main", Image: "quay.io/team/train:1.2", Command: []string{"mpirun", "-n", "4", "python", "train.py"}}
	job.Spec.MPIReplicaSpecs = map[kubeflow.MPIReplicaType]*kubeflow.ReplicaSpec{
		kubeflow.MPIReplicaTypeLauncher: {Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}}},
		kubeflow.MPIReplicaTypeWorker:   {Replicas: new(int32(4)), Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "worker", Image: container.Image}}}}},
	}
	if edit != nil {
		edit(job)
	}
	must(t, api.Create(t.Context(), job))
	return job
}

// report writes the report of a job.
func report(t *testing.T, job *kubeflow.MPIJob, status v1alpha1.JobReportStatus) {
	t.Helper()
	name := "mpijob-" + job.Name
	found := &v1alpha1.JobReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: name, Labels: map[string]string{"mpi.opendatahub.io/job-name": job.Name, "mpi.opendatahub.io/job-kind": "MPIJob"}},
		Spec:       v1alpha1.JobReportSpec{JobRef: v1alpha1.JobReference{APIVersion: "kubeflow.org/v2beta1", Kind: "MPIJob", Name: job.Name, UID: job.UID}},
		Status:     status,
	}
	must(t, api.Create(t.Context(), found))
}

// caller sends requests with a token.
type caller struct {
	t     *testing.T
	token string
}

// send returns the status and the body of a response.
func (c caller) send(method, path string, body any) (int, []byte) {
	c.t.Helper()
	var reader io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		must(c.t, err)
		reader = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(c.t.Context(), method, address+"/api/v1/"+path, reader)
	must(c.t, err)
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	must(c.t, err)
	defer func() { _ = response.Body.Close() }()
	data, err := io.ReadAll(response.Body)
	must(c.t, err)
	return response.StatusCode, data
}

// get reads a value; any other status than 200 fails the test.
func get[T any](c caller, path string) T {
	c.t.Helper()
	return call[T](c, http.MethodGet, path, nil)
}

func post[T any](c caller, path string, body any) T {
	c.t.Helper()
	return call[T](c, http.MethodPost, path, body)
}

func call[T any](c caller, method, path string, body any) T {
	c.t.Helper()
	var value T
	status, data := c.send(method, path, body)
	if status != http.StatusOK {
		c.t.Fatalf("%s %s: status %d: %s", method, path, status, data)
	}
	must(c.t, json.Unmarshal(data, &value))
	return value
}

// eventually waits until a condition is true.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline:
			t.Fatalf("not after 20 s: %s", what)
		case <-tick.C:
		}
	}
}

func names(list dashboard.List) string {
	var all []string
	for _, row := range list.Rows {
		all = append(all, row.Name)
	}
	return strings.Join(all, " ")
}

// isListening reports whether an address accepts connections.
func isListening(address string) bool {
	connection, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		_ = connection.Close()
	}
	return err == nil
}
