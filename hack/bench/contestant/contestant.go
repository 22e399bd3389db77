// Package contestant knows who is measured: our operator, mpi-operator in two settings, and the floor, which is
// not an operator but a client that creates the same objects as fast as the API server takes them.
package contestant

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/hack/bench/apiserver"
	"opendatahub.io/mpijob/hack/bench/process"
	"opendatahub.io/mpijob/hack/bench/programs"
)

// Names of the contestants, as in the report.
const (
	Ours               = "ours"
	WithoutReports     = "without-reports"
	MPIOperator        = "mpi-operator"
	MPIOperatorQPS1000 = "mpi-operator-qps1000"
	FloorName          = "floor"
	PodGroup           = "podgroup"
	Embedded           = "embedded"
	BeforeName         = "before"
	MPIOperatorFast    = "mpi-operator-fast"
)

// Contestant can be started against an API server, again and again.
type Contestant interface {
	// Name is one of the constants above.
	Name() string
	// Start gets it going; its log goes to the file log.
	Start(ctx context.Context, server *apiserver.Server, log string) (Runner, error)
}

// Runner is a contestant that runs.
type Runner interface {
	// Submit has a job's objects made. It returns when the job is handed over, before they are.
	Submit(ctx context.Context, job *kubeflow.MPIJob) error
	// Failed reports once if the contestant cannot go on.
	Failed() <-chan error
	// User is who the contestant is to the API server.
	User() string
	// Usage is what its process has used so far; ok is false if it has no process of its own.
	Usage() (usage process.Usage, ok bool, err error)
	// Rest is how long it must be left alone after its first job, until it is as fresh as before.
	Rest() time.Duration
	// RunsJobs is false if it makes a job's objects and then leaves the job alone.
	RunsJobs() bool
	// Stop ends it at once.
	Stop() error
}

// Restarter is a runner with a process that can be replaced.
type Restarter interface {
	Runner
	// Restart kills the process, if it runs, and starts another one. It returns when that has been started. With takeLease
	// the new one need not wait until the lease of the old one expires.
	Restart(ctx context.Context, takeLease bool) error
	// Supervise has a process that ends by itself be replaced by another one, as the kubelet would do, instead of failing.
	Supervise()
	// Restarts is how many processes have ended by themselves since Supervise.
	Restarts() int
}

// All are the contestants, in the order in which they take turns. The root is our checkout's.
func All(root string, built programs.Paths) []Contestant {
	return []Contestant{
		ours(root, built, Ours),
		// Its rate limiter grants 5 requests/s, and 10 at once after a rest of 2 s.
		mpiOperator(built, MPIOperator, 3*time.Second),
		mpiOperator(built, MPIOperatorQPS1000, time.Second, "-kube-api-qps=1000", "-kube-api-burst=1000"),
		floor{},
	}
}

// Scale are our operator, and mpi-operator with all of its limits raised: with its default of 5 requests a second, 10,000 pods
// would take more than half an hour, and its queue lets 10 jobs a second through. It has as many threads as ours.
func Scale(root string, built programs.Paths) []Contestant {
	return []Contestant{
		ours(root, built, Ours, process.GCTrace),
		mpiOperator(built, MPIOperatorFast, time.Second, "-kube-api-qps=1000", "-kube-api-burst=1000",
			"-controller-queue-rate-limit=1000", "-controller-queue-burst=1000", "-threadiness=32"),
	}
}

func mpiOperator(built programs.Paths, name string, rest time.Duration, args ...string) operator {
	return operator{
		name: name, program: built.MPIOperator, rest: rest,
		// As in its manifests/base/deployment.yaml. It serves health checks on port 8080, whatever is asked.
		args:      append([]string{"-alsologtostderr"}, args...),
		namespace: "mpi-operator", account: "mpi-operator",
		manifests: []string{
			filepath.Join(built.MPIOperatorManifests, "cluster-role.yaml"),
			filepath.Join(built.MPIOperatorManifests, "cluster-role-binding.yaml"),
		},
	}
}

// Before are our operator, that of an earlier checkout, and the floor.
func Before(root string, built programs.Paths, earlier, program string) []Contestant {
	before := ours(earlier, programs.Paths{Operator: program}, BeforeName)
	return []Contestant{ours(root, built, Ours), before, floor{}}
}

// Reports are our operator as it is, and where the cluster has no JobReports, as the API server is to be for the one
// named WithoutReports.
func Reports(root string, built programs.Paths) []Contestant {
	return []Contestant{ours(root, built, Ours, process.GCTrace), ours(root, built, WithoutReports, process.GCTrace)}
}

// Gangs are our operator that leaves pods to the scheduler one by one, has Kubernetes' own PodGroups place them together,
// and does so itself.
func Gangs(root string, built programs.Paths) []Contestant {
	var all []Contestant
	for _, c := range []struct{ name, places string }{{Ours, "none"}, {PodGroup, PodGroup}, {Embedded, Embedded}} {
		of := ours(root, built, c.name)
		of.args = append(of.args, "--gang-scheduling="+c.places)
		all = append(all, of)
	}
	return all
}

func ours(root string, built programs.Paths, name string, env ...string) operator {
	return operator{
		name: name, program: built.Operator, rest: time.Second, electsByFlag: true,
		// As in config/manager/manager.yaml, but that the ports are any that are free, and that there is no
		// webhook, to which an API server outside of the cluster would find no way.
		args:      []string{"--namespace=mpijob-system", "--webhook-port=0", "--health-address=127.0.0.1:0", "--metrics-address=127.0.0.1:0"},
		env:       append([]string{"GOMEMLIMIT=450MiB"}, env...),
		namespace: "mpijob-system", account: "mpijob-operator",
		manifests: []string{filepath.Join(root, "config", "rbac", "role.yaml"), filepath.Join(root, "config", "rbac", "bindings.yaml")},
	}
}

// newClient is a client that is not throttled and knows MPIJobs.
func newClient(server *apiserver.Server) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := kubeflow.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("register MPIJob: %w", err)
	}
	c, err := client.New(server.Admin(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("connect to API server: %w", err)
	}
	return c, nil
}
