package start

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/hack/bench/cluster"
	"opendatahub.io/mpijob/hack/bench/programs"
)

// buildBefore builds the images of the commit before, loads them on the nodes, and returns the template of its operator's pods; nil
// if there is no such commit. Images are loaded only on the nodes of the one-machine cluster, for which own is set.
func (s Settings) buildBefore(ctx context.Context, own bool) (*corev1.PodTemplateSpec, error) {
	if s.Before == "" {
		return nil, nil //nolint:nilnil // there is nothing to build
	}
	if !own {
		return nil, cluster.Missing{Why: "only the nodes of the one-machine cluster get images of an earlier commit"}
	}
	earlier, err := programs.Checkout(ctx, s.Root, s.Before, filepath.Join(s.Out, "before"))
	if err != nil {
		return nil, err
	}
	images := filepath.Join(s.Out, "bin", "images")
	operator, agent := "odh/mpijob-operator:bench-before", "odh/mpijob-agent:bench-before"
	operatorFile, agentFile := filepath.Join(s.Out, "images", "operator-before.tar"), filepath.Join(s.Out, "images", "agent-before.tar")
	// As test/e2e/deploy-commit.sh does.
	for _, step := range []struct {
		folder  string
		command []string
	}{
		{filepath.Join(s.Root, "hack", "images"), []string{"go", "build", "-o", images, "."}},
		{earlier, []string{images, "program", "--name", operator, "--package", "./cmd/operator", "--out", operatorFile}},
		{earlier, []string{
			"env", "GOFIPS140=v1.0.0", images, "program", "--name", agent, "--package", "./cmd/agent", "--path", "/mpi-agent",
			"--link", "/bin/ssh=../mpi-agent", "--folder", "/run", "--out", agentFile,
		}},
		{filepath.Join(s.Root, "hack", "cluster"), []string{"go", "run", ".", "load", operatorFile, agentFile}},
	} {
		command := exec.CommandContext(ctx, step.command[0], step.command[1:]...)
		command.Dir = step.folder
		command.Env = append(os.Environ(), "GOWORK=off")
		if out, err := command.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build images of %s: %s: %w\n%s", s.Before, strings.Join(step.command, " "), err, out)
		}
	}
	manifests, err := exec.CommandContext(ctx, "kubectl", "kustomize", filepath.Join(earlier, "config", "default")).Output()
	if err != nil {
		return nil, fmt.Errorf("build the manifests of %s: %w", s.Before, err)
	}
	return operatorTemplate(string(manifests), operator, agent)
}

// operatorTemplate returns the template of our operator's pods in manifests, with the given images.
func operatorTemplate(manifests, operatorImage, agentImage string) (*corev1.PodTemplateSpec, error) {
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		var object metav1.PartialObjectMetadata
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			return nil, fmt.Errorf("read the manifests: %w", err)
		}
		if object.Kind != "Deployment" || object.Name != cluster.Operator.Name {
			continue
		}
		var operator appsv1.Deployment
		if err := yaml.UnmarshalStrict([]byte(document), &operator); err != nil {
			return nil, fmt.Errorf("read Deployment %s: %w", cluster.Operator.Name, err)
		}
		return withImages(&operator.Spec.Template, operatorImage, agentImage)
	}
	return nil, fmt.Errorf("the manifests have no Deployment %s", cluster.Operator.Name)
}

// withImages sets the image of a template's only container, and that of the agent in its environment.
func withImages(template *corev1.PodTemplateSpec, operatorImage, agentImage string) (*corev1.PodTemplateSpec, error) {
	if len(template.Spec.Containers) != 1 {
		return nil, fmt.Errorf("deployment %s has %d containers instead of one", cluster.Operator.Name, len(template.Spec.Containers))
	}
	container := &template.Spec.Containers[0]
	container.Image = operatorImage
	for i := range container.Env {
		if container.Env[i].Name == agentImageVariable {
			container.Env[i].Value = agentImage
			return template, nil
		}
	}
	return nil, fmt.Errorf("deployment %s has no variable %s", cluster.Operator.Name, agentImageVariable)
}

// deployBefore has the operator of the commit before run, until it is put back. Everything else that is installed stays.
func (f *field) deployBefore(ctx context.Context) (putBack func() error, err error) {
	var operator appsv1.Deployment
	if err := f.Client.Get(ctx, cluster.Operator, &operator); err != nil {
		return nil, fmt.Errorf("get our operator: %w", err)
	}
	putBack = func() error { return f.deploy(context.WithoutCancel(ctx), &operator.Spec.Template) }
	if err := f.deploy(ctx, f.before); err != nil {
		return nil, errors.Join(err, putBack())
	}
	return putBack, nil
}

// deploy replaces the operator's pods by those of a template.
func (f *field) deploy(ctx context.Context, template *corev1.PodTemplateSpec) error {
	if err := f.Scale(ctx, 0); err != nil {
		return err
	}
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		var operator appsv1.Deployment
		if err := f.Client.Get(ctx, cluster.Operator, &operator); err != nil {
			return err
		}
		operator.Spec.Template = *template.DeepCopy()
		return f.Client.Update(ctx, &operator)
	})
	if err != nil {
		return fmt.Errorf("replace our operator: %w", err)
	}
	return f.Scale(ctx, f.Replicas)
}
