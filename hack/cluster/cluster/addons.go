package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"opendatahub.io/mpijob/hack/cluster/addon"
	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/kubeapi"
)

// matchAddOns installs the add-ons that are wanted, versions by name, and
// removes all others.
func (r *run) matchAddOns(ctx context.Context, wanted map[string]string) error {
	if err := r.removeAddOns(ctx, wanted); err != nil {
		return err
	}
	builder, err := binaries.NewBuilder(ctx, r.Repository, r.Report)
	if err != nil {
		return err
	}
	versions, err := addon.Fetch(ctx, builder, wanted)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		if err := r.installAddOn(ctx, builder, name, versions[name]); err != nil {
			return err
		}
	}
	return nil
}

// installAddOn leaves alone what is installed as it should be, and answers.
func (r *run) installAddOn(ctx context.Context, builder binaries.Builder, name string, version addon.Version) error {
	archives, manifests, err := version.Prepare(ctx, builder, r.set.Path("kubectl"))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if err := r.loadAll(ctx, r.nodes, archives); err != nil {
		return err
	}
	client, err := r.client()
	if err != nil {
		return err
	}
	step := r.Report.Step("%s %s", name, version.Version)
	record := r.Layout.AddOn(name, version.Version)
	same, err := sameManifests(manifests, record)
	if err != nil {
		return step.End(err)
	}
	if same && serves(ctx, client, version) == nil {
		step.Done("runs")
		return nil
	}
	// The record goes first: what was begun can then be removed.
	if err := os.MkdirAll(record, 0o755); err != nil {
		return step.End(fmt.Errorf("record of %s: %w", name, err))
	}
	for _, file := range addon.Files() {
		content, err := os.ReadFile(filepath.Join(manifests, file))
		if err != nil {
			return step.End(fmt.Errorf("manifests of %s: %w", name, err))
		}
		if err := writeFile(filepath.Join(record, file), string(content)); err != nil {
			return step.End(err)
		}
		if _, err := r.kubectl(ctx, "apply", "--server-side", "--force-conflicts", "--field-manager=mpijob-cluster", "-f", filepath.Join(record, file)); err != nil {
			return step.End(fmt.Errorf("install %s: %w", name, err))
		}
	}
	if err := waitServes(ctx, client, version); err != nil {
		return step.End(fmt.Errorf("%s does not serve: %w", name, err))
	}
	step.Done("installed")
	return nil
}

// waitServes waits until an add-on serves.
func waitServes(ctx context.Context, client *kubeapi.Client, version addon.Version) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return until(ctx, 500*time.Millisecond, func() error {
		err := serves(ctx, client, version)
		if err == nil {
			return nil
		}
		for _, controller := range version.Controllers {
			err = errors.Join(err, touchPods(ctx, client, controller.Namespace))
		}
		return err
	})
}

// touchPods changes an annotation of a namespace's pods. A controller makes
// its webhooks' certificate itself and waits for the Secret in its volume; the
// kubelet looks after volumes once a minute, and whenever a pod changes.
func touchPods(ctx context.Context, client *kubeapi.Client, namespace string) error {
	path := "/api/v1/namespaces/" + namespace + "/pods"
	var pods struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := client.Get(ctx, path, &pods); err != nil {
		return fmt.Errorf("pods: %w", err)
	}
	for _, pod := range pods.Items {
		err := client.Apply(ctx, path+"/"+pod.Metadata.Name, map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"annotations": map[string]string{"mpijob-cluster/touched": time.Now().Format(time.RFC3339Nano)}},
		})
		if err != nil {
			return fmt.Errorf("touch a pod: %w", err)
		}
	}
	return nil
}

// removeAddOns removes what is installed but not wanted, with all objects of
// its kinds.
func (r *run) removeAddOns(ctx context.Context, wanted map[string]string) error {
	var keep []string
	for name, version := range wanted {
		keep = append(keep, r.Layout.AddOn(name, version))
	}
	records, err := os.ReadDir(r.Layout.AddOns())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("add-ons: %w", err)
	}
	for _, entry := range records {
		record := filepath.Join(r.Layout.AddOns(), entry.Name())
		if slices.Contains(keep, record) {
			continue
		}
		step := r.Report.Step("remove %s", entry.Name())
		if err := step.End(r.removeAddOn(ctx, record)); err != nil {
			return fmt.Errorf("remove %s: %w", entry.Name(), err)
		}
	}
	return nil
}

// removeAddOn removes the controllers first, and then takes the finalizers off the remaining objects: a controller
// that restarts while its CRDs are deleted, as after a change of the control plane, never removes them. Of an add-on
// whose installation failed the record lacks what was not applied.
func (r *run) removeAddOn(ctx context.Context, record string) error {
	definitions, objects := filepath.Join(record, addon.DefinitionsFile), filepath.Join(record, addon.ObjectsFile)
	if exists(objects) {
		if _, err := r.kubectl(ctx, "delete", "--ignore-not-found", "--timeout=2m", "-f", objects); err != nil {
			return err
		}
	}
	if !exists(definitions) {
		return os.RemoveAll(record)
	}
	// Names, not a list: kubectl prints a single object where only one is left.
	names, err := r.kubectl(ctx, "get", "--ignore-not-found", "-f", definitions, "-o", "name")
	if err != nil {
		return err
	}
	if _, err := r.kubectl(ctx, "delete", "--ignore-not-found", "--wait=false", "-f", definitions); err != nil {
		return err
	}
	// A controller's pod that still ends may add a finalizer again.
	const tries = 12
	for try := 1; ; try++ {
		for name := range strings.FieldsSeq(names) {
			_, kind, _ := strings.Cut(name, "/")
			if err := r.releaseAll(ctx, kind); err != nil {
				return err
			}
		}
		_, err := r.kubectl(ctx, "wait", "--for=delete", "--timeout=10s", "-f", definitions)
		if err == nil {
			return os.RemoveAll(record)
		}
		if try == tries {
			return errors.Join(err, r.remaining(ctx, definitions))
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// releaseAll takes the finalizers off all objects of a kind.
func (r *run) releaseAll(ctx context.Context, kind string) error {
	list, err := r.kubectl(ctx, "get", kind, "--all-namespaces", "--ignore-not-found", "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.namespace}{"\n"}{end}`)
	if err != nil {
		if strings.Contains(err.Error(), "doesn't have a resource type") || strings.Contains(err.Error(), "could not find the requested resource") {
			return nil
		}
		return err
	}
	for line := range strings.Lines(list) {
		name, namespace, _ := strings.Cut(strings.TrimSpace(line), " ")
		release := func() error {
			_, err := r.kubectl(ctx, "patch", kind, name, "--namespace", namespace, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
			return err
		}
		err := release()
		if err != nil && strings.Contains(err.Error(), "namespaces \""+namespace+"\" not found") {
			err = r.inNamespace(ctx, namespace, release)
		}
		if err != nil && !strings.Contains(err.Error(), "NotFound") {
			return err
		}
	}
	return nil
}

// inNamespace calls change while a namespace exists that did not. An object that was created as its namespace went may stay behind,
// and the API server refuses changes of objects without a namespace.
func (r *run) inNamespace(ctx context.Context, namespace string, change func() error) error {
	if _, err := r.kubectl(ctx, "create", "namespace", namespace); err != nil {
		return err
	}
	err := change()
	_, deleted := r.kubectl(ctx, "delete", "namespace", namespace, "--wait=false")
	return errors.Join(err, deleted)
}

// remaining says which definitions remain, and why the API server keeps them.
func (r *run) remaining(ctx context.Context, definitions string) error {
	out, err := r.kubectl(ctx, "get", "--ignore-not-found", "-f", definitions, "-o",
		`custom-columns=KIND:.metadata.name,WHY:.status.conditions[?(@.type=="Terminating")].message`)
	if err != nil {
		return err
	}
	return errors.New("not deleted:\n" + out)
}

// serves returns nil if all controllers of an add-on are available and their
// webhooks answer.
func serves(ctx context.Context, client *kubeapi.Client, version addon.Version) error {
	for _, controller := range version.Controllers {
		if err := controllerServes(ctx, client, controller); err != nil {
			return fmt.Errorf("%s: %w", controller.Name, err)
		}
	}
	return nil
}

func controllerServes(ctx context.Context, client *kubeapi.Client, controller addon.Controller) error {
	var deployment struct {
		Metadata struct{ Generation int }
		Status   struct{ ObservedGeneration, UpdatedReplicas, AvailableReplicas, Replicas int }
	}
	if err := client.Get(ctx, controller.DeploymentPath(), &deployment); err != nil {
		return err
	}
	status := deployment.Status
	if status.ObservedGeneration < deployment.Metadata.Generation || status.UpdatedReplicas < 1 ||
		status.AvailableReplicas < status.Replicas || status.UpdatedReplicas < status.Replicas {
		return fmt.Errorf("no pod of it is available; look at them with: kubectl -n %s get pods", controller.Namespace)
	}
	err := client.DryRun(ctx, controller.Probe.Path, controller.Probe.Object)
	if err != nil && !kubeapi.Denied(err) {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

func (r *run) kubectl(ctx context.Context, args ...string) (stdout string, err error) {
	var out, stderr bytes.Buffer
	command := exec.CommandContext(ctx, r.set.Path("kubectl"), append([]string{"--kubeconfig", r.Layout.Kubeconfig()}, args...)...)
	command.Stdout, command.Stderr = &out, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out.String(), nil
}

// sameManifests reports whether two folders have equal manifests. The second
// need not be there.
func sameManifests(folder, other string) (bool, error) {
	for _, file := range addon.Files() {
		a, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			return false, fmt.Errorf("compare: %w", err)
		}
		b, err := os.ReadFile(filepath.Join(other, file))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("compare: %w", err)
		}
		if !bytes.Equal(a, b) {
			return false, nil
		}
	}
	return true, nil
}
