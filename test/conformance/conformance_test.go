package conformance

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"opendatahub.io/mpijob/test/conformance/controller"
)

const (
	root     = "../.."
	upstream = "github.com/kubeflow/mpi-operator"
	tests    = "./test/integration"
)

func TestUpstream(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("KUBEBUILDER_ASSETS names no folder with kube-apiserver, etcd and kubectl")
	}
	work := t.TempDir()
	operator := filepath.Join(work, "operator")
	output(t, root, "go", "build", "-o", operator, "./cmd/operator")
	module := filepath.Join(work, "module")
	copyModule(t, module)
	declared := declaredTests(t, module)
	forTests, forOperator := startAPIServer(t, work, schedulerAPIs(t, work, module))

	command := exec.CommandContext(t.Context(), "go", "test", "-json", "-count=1", "-trimpath", "-vet=off", tests)
	command.Dir = module
	command.Env = append(os.Environ(), "GOWORK=off", "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+forTests,
		controller.OperatorVariable+"="+operator, controller.KubeconfigVariable+"="+forOperator)
	report(t, declared, run(t, command))
}

// startAPIServer starts the API server. mpi-operator's tests would start one themselves, but leave it behind if the
// operator dies, and give the operator all rights; here it has those of config/rbac. The kubeconfig for the tests
// is an administrator's.
func startAPIServer(t *testing.T, folder string, crds []string) (forTests, forOperator string) {
	t.Helper()
	const namespace, account = "mpijob-system", "mpijob-operator"
	ctrl.SetLogger(logr.Discard())
	environment := &envtest.Environment{UseExistingCluster: new(false), CRDDirectoryPaths: crds, ErrorIfCRDPathMissing: true}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Errorf("stop API server: %v", err)
		}
	})
	if _, err := environment.Start(); err != nil {
		t.Fatalf("start API server: %v", err)
	}
	kubeconfig := func(name string, groups ...string) string {
		t.Helper()
		user, err := environment.AddUser(envtest.User{Name: name, Groups: groups}, nil)
		if err != nil {
			t.Fatalf("add user %s: %v", name, err)
		}
		data, err := user.KubeConfig()
		if err != nil {
			t.Fatalf("add user %s: %v", name, err)
		}
		file := filepath.Join(folder, strings.ReplaceAll(name, ":", "-")+".kubeconfig")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	forTests = kubeconfig("admin", "system:masters")
	forOperator = kubeconfig("system:serviceaccount:"+namespace+":"+account, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	output(t, ".", kubectl, "--kubeconfig="+forTests, "create", "namespace", namespace)
	output(t, ".", kubectl, "--kubeconfig="+forTests, "create", "--namespace="+namespace, "-f="+root+"/config/rbac/role.yaml", "-f="+root+"/config/rbac/bindings.yaml")
	return forTests, forOperator
}

// schedulerAPIs are files with the CRDs of the schedulers that place gangs, in the versions that mpi-operator uses: the
// one that scheduler-plugins publishes, and one made from the types that Volcano publishes.
func schedulerAPIs(t *testing.T, folder, module string) []string {
	t.Helper()
	const coscheduling, volcano = "sigs.k8s.io/scheduler-plugins", "volcano.sh/apis"
	output(t, module, "go", "mod", "download", coscheduling, volcano)
	published := strings.TrimSpace(output(t, module, "go", "list", "-m", "-f={{.Dir}}", coscheduling))
	generator := strings.TrimSpace(output(t, root+"/hack/tools/controller-gen", "go", "tool", "-n", "controller-gen"))
	made := filepath.Join(folder, "volcano.yaml")
	crds := output(t, module, generator, "crd", "paths="+volcano+"/pkg/apis/scheduling/v1beta1", "output:crd:stdout")
	if err := os.WriteFile(made, []byte(crds), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{filepath.Join(published, "config", "crd", "bases", "scheduling.x-k8s.io_podgroups.yaml"), made}
}

// copyModule makes a copy of mpi-operator's module in which our package controller is in the place of its own.
func copyModule(t *testing.T, to string) {
	t.Helper()
	output(t, root, "go", "mod", "download", upstream)
	from := strings.TrimSpace(output(t, root, "go", "list", "-m", "-f={{.Dir}}", upstream))
	original := filepath.Join(to, "pkg", "controller")
	err := os.CopyFS(to, os.DirFS(from))
	if err == nil {
		err = os.RemoveAll(original)
	}
	if err == nil {
		err = os.CopyFS(original, os.DirFS("controller"))
	}
	if err != nil {
		t.Fatalf("copy mpi-operator's module: %v", err)
	}
}

// declaredTests lists mpi-operator's integration tests, in their order.
func declaredTests(t *testing.T, module string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(module, tests, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("mpi-operator has no files in %s: %v", tests, err)
	}
	var names []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`).FindAllSubmatch(source, -1) {
			names = append(names, string(match[1]))
		}
	}
	return names
}

// result is how a test ended, in the words of `go test -json`, and what it and the operator printed meanwhile.
type result struct {
	action  string
	seconds float64
	output  strings.Builder
}

// run runs `go test -json`. Results are by test; that of "" is the whole package's.
func run(t *testing.T, command *exec.Cmd) map[string]*result {
	t.Helper()
	// The operators are in its process group: none outlives this test, whatever happens to the one that runs it.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = command.Cancel() }()

	results := map[string]*result{"": {}}
	for events := json.NewDecoder(stdout); ; {
		var event struct {
			Action, Test, Output string
			Elapsed              float64
		}
		if err := events.Decode(&event); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("read what go test says: %v", err)
		}
		if results[event.Test] == nil {
			results[event.Test] = &result{}
		}
		r := results[event.Test]
		r.output.WriteString(event.Output)
		switch event.Action {
		case "pass", "fail", "skip":
			r.action, r.seconds = event.Action, event.Elapsed
		}
	}
	// How it ended is what the package's result says.
	_ = command.Wait()
	return results
}

// report makes a subtest of each of mpi-operator's tests, and prints a summary.
func report(t *testing.T, declared []string, results map[string]*result) {
	t.Helper()
	count := map[string]int{}
	var summary strings.Builder
	line := func(how, test, detail string) {
		count[how]++
		fmt.Fprintf(&summary, "  %-8s %-34s %s\n", how, test, detail)
	}
	for _, test := range declared {
		t.Run(test, func(t *testing.T) {
			r := results[test]
			switch {
			case r == nil:
				line("failed", test, "it did not run")
				t.Error("it did not run")
			case r.action == "pass":
				line("passed", test, fmt.Sprintf("%.1f s", r.seconds))
			case r.action == "skip":
				line("skipped", test, "by itself")
				t.Skip(r.output.String())
			default:
				line("failed", test, fmt.Sprintf("%.1f s", r.seconds))
				t.Error(r.output.String())
			}
		})
	}
	if whole := results[""]; whole.action != "pass" {
		t.Errorf("go test says %q:\n%s", whole.action, whole.output.String())
	}
	fmt.Printf("mpi-operator's integration tests: %d passed, %d failed, %d skipped\n%s",
		count["passed"], count["failed"], count["skipped"], summary.String())
}

// output runs a command in a folder and returns what it prints.
func output(t *testing.T, folder, name string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = folder
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return string(out)
}
