package addon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/progress"
)

// Files of rendered manifests: CRDs, and all other objects.
const (
	DefinitionsFile = "definitions.yaml"
	ObjectsFile     = "objects.yaml"
)

// Files are the names of the files of rendered manifests, in the order in
// which they are to be applied.
func Files() []string { return []string{DefinitionsFile, ObjectsFile} }

// Kustomization adapts the controllers' own manifests, each in a folder of the
// controller's name, to a cluster without a registry and with short intervals
// between retries.
func (v Version) Kustomization() string {
	var text strings.Builder
	text.WriteString("resources:\n")
	for _, c := range v.Controllers {
		fmt.Fprintf(&text, "- %s\n", path.Join(c.Name, c.Overlay))
	}
	text.WriteString("patches:\n")
	for _, c := range v.Controllers {
		fmt.Fprintf(&text, patch, c.Deployment, c.Namespace, c.Container, c.Image())
	}
	return text.String()
}

// patch has the image that was built here. The request for CPU is small,
// because the machine is: it would be missing for jobs. The probe is frequent,
// because upstream's makes the first "up" wait for 15 s.
const patch = `- patch: |-
    apiVersion: apps/v1
    kind: Deployment
    metadata:
      name: %s
      namespace: %s
    spec:
      template:
        spec:
          containers:
          - name: %s
            image: %s
            imagePullPolicy: Never
            resources:
              requests:
                cpu: 10m
            readinessProbe:
              initialDelaySeconds: 0
              periodSeconds: 1
`

// Prepare builds what the add-on consists of, if need be, without a cluster:
// an archive with the image of each controller, and the folder of manifests
// (Files), rendered with the program kubectl.
func (v Version) Prepare(ctx context.Context, builder binaries.Builder, kubectl string) (archives []string, manifests string, err error) {
	for _, controller := range v.Controllers {
		archive, err := builder.Archive(ctx, controller.Controller)
		if err != nil {
			return nil, "", err
		}
		archives = append(archives, archive)
	}
	manifests, err = v.Render(ctx, builder, kubectl)
	return archives, manifests, err
}

// PrepareAll prepares add-ons, versions by name as Parse returns them, with
// the programs of set.
func PrepareAll(ctx context.Context, wanted map[string]string, repository string, set binaries.Set, report *progress.Reporter) error {
	builder, err := binaries.NewBuilder(ctx, repository, report)
	if err != nil {
		return err
	}
	versions, err := Fetch(ctx, builder, wanted)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		version := versions[name]
		if _, _, err := version.Prepare(ctx, builder, set.Path("kubectl")); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Fetch returns the wanted versions of add-ons. It fetches the programs of all of them at once, if a mirror has them.
func Fetch(ctx context.Context, builder binaries.Builder, wanted map[string]string) (map[string]Version, error) {
	versions := map[string]Version{}
	var controllers []binaries.Controller
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		version, err := Find(name, wanted[name])
		if err != nil {
			return nil, err
		}
		versions[name] = version
		for _, c := range version.Controllers {
			controllers = append(controllers, c.Controller)
		}
	}
	builder.FetchAll(ctx, controllers)
	return versions, nil
}

// Render returns a folder with the rendered manifests (Files), made if need be
// with the program kubectl.
func (v Version) Render(ctx context.Context, builder binaries.Builder, kubectl string) (string, error) {
	kustomization := v.Kustomization()
	hash := sha256.New()
	names := []string{"manifests"}
	for _, c := range v.Controllers {
		names = append(names, c.Name, c.Version)
		hash.Write(fmt.Appendln(nil, c.Manifests, c.Without))
	}
	hash.Write([]byte(kustomization))
	names = append(names, hex.EncodeToString(hash.Sum(nil))[:12])
	return builder.Once(ctx, strings.Join(names, "-"), func(into string) error {
		work, err := os.MkdirTemp("", "manifests-")
		if err != nil {
			return fmt.Errorf("manifests: %w", err)
		}
		defer func() { _ = os.RemoveAll(work) }()
		for _, c := range v.Controllers {
			if err := c.copyManifests(ctx, builder, filepath.Join(work, c.Name)); err != nil {
				return fmt.Errorf("manifests of %s %s: %w", c.Name, c.Version, err)
			}
		}
		if err := os.WriteFile(filepath.Join(work, "kustomization.yaml"), []byte(kustomization), 0o644); err != nil {
			return fmt.Errorf("manifests: %w", err)
		}
		rendered, err := kustomize(ctx, kubectl, work)
		if err != nil {
			return err
		}
		definitions, objects := split(rendered)
		for name, content := range map[string]string{DefinitionsFile: definitions, ObjectsFile: objects} {
			if err := os.WriteFile(filepath.Join(into, name), []byte(content), 0o644); err != nil {
				return fmt.Errorf("manifests: %w", err)
			}
		}
		return nil
	})
}

func (c Controller) copyManifests(ctx context.Context, builder binaries.Builder, into string) error {
	source, err := builder.Source(ctx, c.Controller)
	if err != nil {
		return err
	}
	if err := os.CopyFS(into, os.DirFS(filepath.Join(source, c.Manifests))); err != nil {
		return fmt.Errorf("copy: %w", err)
	}
	overlay := filepath.Join(into, c.Overlay, "kustomization.yaml")
	content, err := os.ReadFile(overlay)
	if err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	text := string(content)
	for _, resource := range c.Without {
		if text, err = without(text, resource); err != nil {
			return fmt.Errorf("%s: %w", c.Overlay, err)
		}
	}
	if err := os.WriteFile(overlay, []byte(text), 0o644); err != nil {
		return fmt.Errorf("overlay: %w", err)
	}
	return nil
}

// without takes a resource out of a kustomization. It is an error if it is
// missing: upstream has changed, and this package must follow.
func without(kustomization, resource string) (string, error) {
	var kept strings.Builder
	found := false
	for line := range strings.Lines(kustomization) {
		item, _, _ := strings.Cut(strings.TrimSpace(line), "#")
		if strings.TrimSpace(item) == "- "+resource {
			found = true
			continue
		}
		kept.WriteString(line)
	}
	if !found {
		return "", fmt.Errorf("the kustomization does not have the resource %s, which was to be left out", resource)
	}
	return kept.String(), nil
}

// split parts CustomResourceDefinitions from all other objects.
func split(manifests string) (definitions, objects string) {
	var parts [2]strings.Builder
	for document := range strings.SplitSeq(manifests, "\n---\n") {
		part := &parts[1]
		if strings.Contains("\n"+document, "\nkind: CustomResourceDefinition\n") {
			part = &parts[0]
		}
		part.WriteString(strings.TrimSuffix(document, "\n") + "\n---\n")
	}
	return parts[0].String(), parts[1].String()
}

func kustomize(ctx context.Context, kubectl, dir string) (string, error) {
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, kubectl, "kustomize", dir)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("kubectl kustomize: %w: %s", err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
