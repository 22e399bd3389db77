// Package programs builds what the bench runs: our operator from the checkout, and mpi-operator and KWOK as the
// go.mod files next to this one pin them.
package programs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Paths are the built programs.
type Paths struct {
	// Operator is ours, MPIOperator is github.com/kubeflow/mpi-operator.
	Operator, MPIOperator string
	// MPIOperatorManifests is the folder of the manifests that mpi-operator ships.
	MPIOperatorManifests string
	// CLI is our command line.
	CLI string
	// KWOK is empty unless it was asked for.
	KWOK string
}

const mpiOperatorModule = "github.com/kubeflow/mpi-operator"

// Build compiles the programs of the checkout at root into the folder dir, which may hold earlier ones: what is
// up to date is not linked again. KWOK takes minutes the first time and is built only if wanted.
func Build(ctx context.Context, root, dir string, kwok bool) (Paths, error) {
	pins := filepath.Join(root, "hack", "bench", "programs")
	built := Paths{Operator: filepath.Join(dir, "operator"), MPIOperator: filepath.Join(dir, "mpi-operator")}
	if _, err := BuildOperator(ctx, root, built.Operator); err != nil {
		return Paths{}, err
	}
	built.CLI = filepath.Join(dir, "kubectl-odh-mpijob")
	if err := build(ctx, root, built.CLI, "./cmd/kubectl-odh-mpijob"); err != nil {
		return Paths{}, err
	}
	pin := filepath.Join(pins, "mpi-operator")
	if err := build(ctx, pin, built.MPIOperator, mpiOperatorModule+"/cmd/mpi-operator"); err != nil {
		return Paths{}, err
	}
	source, err := run(ctx, pin, "list", "-m", "-f", "{{.Dir}}", mpiOperatorModule)
	if err != nil {
		return Paths{}, err
	}
	built.MPIOperatorManifests = filepath.Join(source, "manifests", "base")
	if kwok {
		built.KWOK = filepath.Join(dir, "kwok")
		if err := build(ctx, filepath.Join(pins, "kwok"), built.KWOK, "sigs.k8s.io/kwok/cmd/kwok"); err != nil {
			return Paths{}, err
		}
	}
	return built, nil
}

// BuildOperator compiles the operator of the checkout at root into a file, and returns the file.
func BuildOperator(ctx context.Context, root, file string) (string, error) {
	return file, build(ctx, root, file, "./cmd/operator")
}

// Checkout exports a commit of the repository at root into a folder, in place of what is there, and returns the folder.
func Checkout(ctx context.Context, root, commit, dir string) (string, error) {
	if err := os.RemoveAll(dir); err != nil {
		return "", fmt.Errorf("check out %s: %w", commit, err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("check out %s: %w", commit, err)
	}
	archive := dir + ".tar"
	defer func() { _ = os.Remove(archive) }()
	for _, command := range [][]string{
		{"git", "-C", root, "archive", "--output", archive, commit},
		{"tar", "-x", "-f", archive, "-C", dir},
	} {
		if out, err := exec.CommandContext(ctx, command[0], command[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("check out %s: %w: %s", commit, err, strings.TrimSpace(string(out)))
		}
	}
	return dir, nil
}

func build(ctx context.Context, module, out, pkg string) error {
	_, err := run(ctx, module, "build", "-o", out, pkg)
	return err
}

// run runs the go command in a folder and returns what it printed, trimmed.
func run(ctx context.Context, dir string, args ...string) (string, error) {
	return runWith(ctx, nil, dir, args...)
}

// runWith is run with additional environment variables.
func runWith(ctx context.Context, env []string, dir string, args ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = dir
	// As the images are built: static, and without symbols of no use here.
	command.Env = slices.Concat(os.Environ(), []string{"CGO_ENABLED=0", "GOWORK=off"}, env)
	var complaints strings.Builder
	command.Stderr = &complaints
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, complaints.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// WorkloadCRD is the file of the definition of Kueue's Workload, of the version that the one-machine cluster has.
func WorkloadCRD(ctx context.Context, root string) (string, error) {
	source, err := run(ctx, filepath.Join(root, "hack", "cluster", "build", "kueue-v0.19.2"), "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/kueue")
	if err != nil {
		return "", err
	}
	return filepath.Join(source, "config", "components", "crd", "bases", "kueue.x-k8s.io_workloads.yaml"), nil
}

// Versions are those of what Build builds, and of Kubernetes' programs in the folder assets.
func Versions(ctx context.Context, root, assets string) (map[string]string, error) {
	mpiOperator, err := MPIOperatorVersion(ctx, root)
	if err != nil {
		return nil, err
	}
	kubernetes, err := exec.CommandContext(ctx, filepath.Join(assets, "kube-apiserver"), "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("ask kube-apiserver for its version: %w", err)
	}
	return map[string]string{
		"mpi-operator": mpiOperator,
		"kubernetes":   strings.TrimPrefix(strings.TrimSpace(string(kubernetes)), "Kubernetes "),
		"ours":         Commit(ctx, root),
	}, nil
}

// MPIOperatorVersion is that of the mpi-operator that Build builds.
func MPIOperatorVersion(ctx context.Context, root string) (string, error) {
	pin := filepath.Join(root, "hack", "bench", "programs", "mpi-operator")
	return run(ctx, pin, "list", "-m", "-f", "{{.Version}}", mpiOperatorModule)
}

// Describe returns a commit of the repository at root as Commit does that of the checkout.
func Describe(ctx context.Context, root, commit string) (string, error) {
	command := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", commit)
	out, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("there is no commit %s in %s: %w", commit, root, err)
	}
	return strings.TrimSpace(string(out)), nil
}

// Commit is that of the checkout at root. A checkout without git can be measured too: its commit is unknown.
func Commit(ctx context.Context, root string) string {
	commit, err := exec.CommandContext(ctx, "git", "-C", root, "describe", "--always", "--dirty").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(commit))
}
