package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/cli"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/kueue"
	"opendatahub.io/mpijob/internal/mpi"
)

// The transcripts in testdata/script run the program, as users do, against a real API server with our CRDs and those of
// testdata/crds.yaml. There is no operator: the command report of a script makes the JobReports that it would write.
//
//	go test ./internal/cli -run TestScripts/list -update    # write what is expected anew, then read the diff

var update = flag.Bool("update", false, "write the files that commands print to in scripts anew")

// api is the API server's; nil where there is none to run.
var (
	api    client.Client
	server *rest.Config
	// bare is an API server that knows no kind of object.
	bare *httptest.Server
)

// clock is the variable that says what time it is for the program in a script.
const clock = "MPIJOB_TEST_TIME"

func TestMain(m *testing.M) {
	run := func() {
		now := time.Now
		if at, err := time.Parse(time.RFC3339, os.Getenv(clock)); err == nil {
			now = func() time.Time { return at }
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		code := cli.Main(ctx, os.Args, genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}, now)
		stop()
		os.Exit(code)
	}
	testscript.Main(withServer{m}, map[string]func(){"kubectl-odh-mpijob": run, "oc-odh-mpijob": run})
}

// withServer starts an API server before the tests.
type withServer struct{ m *testing.M }

// Run implements testscript.TestingM.
func (w withServer) Run() int {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return w.m.Run()
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	crds := filepath.Join("..", "..", "config", "crd")
	environment := &envtest.Environment{
		CRDDirectoryPaths: []string{
			filepath.Join(crds, "kubeflow.org_mpijobs.yaml"), filepath.Join(crds, "mpi.opendatahub.io_jobreports.yaml"),
			filepath.Join(crds, "mpi.opendatahub.io_runtimetests.yaml"), filepath.Join("testdata", "crds.yaml"),
		},
		ErrorIfCRDPathMissing: true, ControlPlaneStartTimeout: 2 * time.Minute,
	}
	var err error
	if server, err = environment.Start(); err != nil {
		fmt.Fprintln(os.Stderr, "start kube-apiserver and etcd:", err)
		return 1
	}
	defer func() { _ = environment.Stop() }()
	server.QPS = -1
	scheme := runtime.NewScheme()
	err = errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme), v1alpha1.AddToScheme(scheme))
	if err == nil {
		api, err = client.New(server, client.Options{Scheme: scheme})
	}
	if err == nil {
		err = createAll(context.Background(), filepath.Join("..", "..", "config", "rbac", "users.yaml"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "prepare the API server:", err)
		return 1
	}
	bare = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		http.Error(w, "404 page not found", http.StatusNotFound)
	}))
	defer bare.Close()
	return w.m.Run()
}

// createAll creates the objects of a file.
func createAll(ctx context.Context, file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return eachDocument(data, func(document []byte) error {
		var object unstructured.Unstructured
		if err := json.Unmarshal(document, &object.Object); err != nil {
			return err
		}
		return api.Create(ctx, &object)
	})
}

// eachDocument calls a function with each document of a YAML file, as JSON.
func eachDocument(data []byte, each func([]byte) error) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		var document json.RawMessage
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := each(document); err != nil {
			return err
		}
	}
}

func TestScripts(t *testing.T) {
	if api == nil {
		t.Skip("SKIPPED: KUBEBUILDER_ASSETS names no kube-apiserver and etcd; `make unit` does")
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: *update, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: setup,
		Cmds:  map[string]func(*testscript.TestScript, bool, []string){"report": makeReports, "status": setStatus, "pod": makePod, "workload": makeWorkload, "bucket": fillBucket},
	})
}

// setup gives a script a namespace of its own, a kubeconfig for it, kubectl, and a time that stands still.
func setup(env *testscript.Env) error {
	name := strings.ReplaceAll(strings.TrimPrefix(filepath.Base(env.WorkDir), "script-"), "_", "-")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := api.Create(context.Background(), namespace); err != nil {
		return err
	}
	kubeconfig := filepath.Join(env.WorkDir, "kubeconfig")
	for file, config := range map[string]*rest.Config{
		kubeconfig: server,
		filepath.Join(env.WorkDir, "expired.kubeconfig"): {Host: server.Host, BearerToken: "expired", TLSClientConfig: rest.TLSClientConfig{CAData: server.CAData}},
		filepath.Join(env.WorkDir, "bare.kubeconfig"):    {Host: bare.URL},
	} {
		if err := writeKubeconfig(file, config, name); err != nil {
			return err
		}
	}
	env.Setenv("KUBECONFIG", kubeconfig)
	env.Setenv("HOME", env.WorkDir)
	env.Setenv("NAMESPACE", name)
	env.Setenv("TZ", "UTC")
	env.Setenv("PATH", env.Getenv("PATH")+string(filepath.ListSeparator)+os.Getenv("KUBEBUILDER_ASSETS"))
	// Before any real one: what the API server has made since is as old as can be, 0s.
	env.Setenv(clock, "2026-01-02T10:10:00Z")
	return nil
}

func writeKubeconfig(file string, config *rest.Config, namespace string) error {
	out := clientcmdapi.NewConfig()
	out.Clusters["test"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthorityData: config.CAData}
	out.AuthInfos["test"] = &clientcmdapi.AuthInfo{ClientCertificateData: config.CertData, ClientKeyData: config.KeyData, Token: config.BearerToken}
	out.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: namespace}
	out.CurrentContext = "test"
	return clientcmd.WriteToFile(*out, file)
}

// makeReports is the script command report: it writes the JobReports of a file, each for the job that it names, as the
// operator does. A job that is not there has had the UID "gone".
func makeReports(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: report FILE")
	}
	ctx := context.Background()
	ts.Check(eachDocument([]byte(ts.ReadFile(args[0])), func(document []byte) error {
		var report v1alpha1.JobReport
		if err := json.Unmarshal(document, &report); err != nil {
			return err
		}
		ref := &report.Spec.JobRef
		ref.APIVersion = kubeflow.SchemeGroupVersion.String()
		if ref.Kind == trainjob.Kind {
			ref.APIVersion = trainjob.GroupVersion.String()
		}
		job := &unstructured.Unstructured{}
		job.SetAPIVersion(ref.APIVersion)
		job.SetKind(ref.Kind)
		report.Namespace = ts.Getenv("NAMESPACE")
		ref.UID = "gone"
		if err := api.Get(ctx, types.NamespacedName{Namespace: report.Namespace, Name: ref.Name}, job); err == nil {
			ref.UID = job.GetUID()
		}
		of := mpi.Job{Kind: ref.Kind, Name: ref.Name, UID: ref.UID}
		report.Name, report.Labels = of.ReportName(), of.ReportLabels()
		var old v1alpha1.JobReport
		if err := api.Get(ctx, types.NamespacedName{Namespace: report.Namespace, Name: report.Name}, &old); err == nil {
			report.ResourceVersion = old.ResourceVersion
			return api.Update(ctx, &report)
		}
		return api.Create(ctx, &report)
	}))
}

// makeWorkload is the script command workload: it makes what Kueue makes of an MPIJob that it queues, with the job's name.
func makeWorkload(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: workload JOB")
	}
	ctx, key := context.Background(), types.NamespacedName{Namespace: ts.Getenv("NAMESPACE"), Name: args[0]}
	var job kubeflow.MPIJob
	ts.Check(api.Get(ctx, key, &job))
	workload := &unstructured.Unstructured{}
	workload.SetGroupVersionKind(kueue.WorkloadKind)
	workload.SetNamespace(key.Namespace)
	workload.SetName(key.Name)
	workload.SetLabels(map[string]string{kueue.LabelJobUID: string(job.UID)})
	workload.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(&job, kubeflow.SchemeGroupVersionKind)})
	ts.Check(unstructured.SetNestedField(workload.Object, job.Labels[mpi.LabelQueue], "spec", "queueName"))
	ts.Check(api.Create(ctx, workload))
}

// setStatus is the script command status: KIND NAME JSON merges a status into an object, as controllers do.
func setStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: status KIND NAME JSON")
	}
	object := &unstructured.Unstructured{}
	switch args[0] {
	case "mpijob":
		object.SetGroupVersionKind(kubeflow.SchemeGroupVersionKind)
	case "trainjob":
		object.SetGroupVersionKind(trainjob.GroupVersion.WithKind(trainjob.Kind))
	case "pod":
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
	case "quota":
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ResourceQuota"))
	case "workload":
		object.SetGroupVersionKind(kueue.WorkloadKind)
	default:
		ts.Fatalf("no such kind: %s", args[0])
	}
	object.SetNamespace(ts.Getenv("NAMESPACE"))
	object.SetName(args[1])
	ts.Check(api.Status().Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(`{"status":`+args[2]+`}`))))
}
