package docs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	sigsyaml "sigs.k8s.io/yaml"
)

// TestOnAPIServer has a real API server, with our definitions and Kubeflow Trainer's, accept the objects in the pages in a dry run, and
// has kubectl read the pages' commands: those with get are run, of others the flags are parsed.
func TestOnAPIServer(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		t.Skip("SKIPPED: KUBEBUILDER_ASSETS names no kube-apiserver and etcd; `make unit` does")
	}
	ctrl.SetLogger(logr.FromSlogHandler(slog.DiscardHandler))
	crds := definitions(t)
	environment := &envtest.Environment{CRDs: crds, CRDInstallOptions: envtest.CRDInstallOptions{MaxTime: 2 * time.Minute}, ControlPlaneStartTimeout: 2 * time.Minute}
	config, err := environment.Start()
	if err != nil {
		t.Fatalf("start kube-apiserver and etcd: %v", err)
	}
	t.Cleanup(func() { _ = environment.Stop() })
	config.QPS = -1
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, environment.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("manifests", func(t *testing.T) { createManifests(t, client.WithFieldValidation(api, metav1.FieldValidationStrict)) })
	t.Run("kubectl", func(t *testing.T) { runKubectl(t, filepath.Join(assets, "kubectl"), kubeconfig) })
	t.Run("fields", func(t *testing.T) { checkFields(t, crds) })
}

// definitions returns our definitions, Kubeflow Trainer's of the version that the one-machine cluster has, and those of Kueue and
// metrics without a schema.
func definitions(t *testing.T) (all []*apiextensions.CustomResourceDefinition) {
	t.Helper()
	version := regexp.MustCompile(`trainerManager\("(v[\d.]+)"\)`).FindStringSubmatch(read(t, filepath.Join(root, "hack", "cluster", "addon", "trainer.go")))
	if version == nil {
		t.Fatal("hack/cluster/addon/trainer.go names no version of Trainer")
	}
	output, err := exec.CommandContext(t.Context(), "go", "mod", "download", "-json", "github.com/kubeflow/trainer/v2@"+version[1]).Output() //nolint:gosec // the version is the repository's
	var module struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(output, &module)
	}
	if err != nil {
		t.Fatalf("download Trainer %s: %v\n%s", version[1], err, output)
	}
	for _, pattern := range []string{filepath.Join(root, "config", "crd", "*_*.yaml"), filepath.Join(module.Dir, "manifests", "base", "crds", "*_*.yaml"), filepath.Join(root, "internal", "cli", "testdata", "crds.yaml")} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("no files %s: %v", pattern, err)
		}
		for _, path := range paths {
			for _, document := range regexp.MustCompile(`(?m)^---\n`).Split(read(t, path), -1) {
				var crd apiextensions.CustomResourceDefinition
				if err := sigsyaml.Unmarshal([]byte(document), &crd); err != nil {
					t.Fatalf("%s: %v", path, err)
				}
				known := slices.ContainsFunc(all, func(other *apiextensions.CustomResourceDefinition) bool { return other.Name == crd.Name })
				if crd.Name != "" && !known {
					all = append(all, &crd)
				}
			}
		}
	}
	return all
}

// createManifests has the API server accept each object in the pages.
func createManifests(t *testing.T, api client.Client) {
	t.Helper()
	created := 0
	for _, page := range siteOf(t) {
		blocks, _ := blocksOf(t, page)
		for _, m := range manifestsOf(t, page, blocks) {
			if slices.Contains(buildGroups, m.object.GroupVersionKind().Group) {
				continue
			}
			if namespace := m.object.GetNamespace(); namespace != "" {
				err := api.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
				if client.IgnoreAlreadyExists(err) != nil {
					t.Fatal(err)
				}
			} else {
				m.object.SetNamespace("default")
			}
			created++
			if err := api.Create(t.Context(), m.object, client.DryRunAll); err != nil {
				t.Errorf("%s: %v", m.at, err)
			}
		}
	}
	if created < 20 {
		t.Errorf("%d objects were created", created)
	}
	wrong, err := complete("TrainJob spec.trainer", map[string]any{"numNode": 2})
	if err != nil {
		t.Fatal(err)
	}
	wrong.SetNamespace("default")
	if err := api.Create(t.Context(), wrong, client.DryRunAll); !apierrors.IsBadRequest(err) {
		t.Errorf("an unknown field is accepted: %v", err)
	}
}

// kubectlCalls returns the commands of kubectl, and of oc where it is the same, in the pages, and where the first of each is.
func kubectlCalls(t *testing.T) (calls []call, at map[string]string) {
	t.Helper()
	at = map[string]string{}
	for _, page := range siteOf(t) {
		blocks, _ := blocksOf(t, page)
		for _, b := range blocks {
			found, err := callsOf(scriptOf(b))
			if err != nil {
				continue // TestBlocksAreChecked reports it
			}
			for _, words := range found {
				own := len(words) > 1 && words[1] == "odh"
				shared := words[0] == "oc" && slices.Contains(sharedVerbs, verb(words))
				if own || words[0] != "kubectl" && words[0] != "bin/kubectl" && !shared {
					continue
				}
				key := keyOf(words)
				if at[key] == "" {
					at[key] = fmt.Sprintf("%s:%d", page, b.line)
					calls = append(calls, words)
				}
			}
		}
	}
	return calls, at
}

// keyOf returns what of a command is tried, so that commands with the same are tried once: all but names that the reader fills in, and of
// commands that are not run, the flags.
func keyOf(words call) string {
	if verb(words) != "get" {
		key := verb(words)
		for _, word := range words[1:] {
			if name, _, _ := strings.Cut(word, "="); strings.HasPrefix(word, "-") {
				key += " " + name
			}
		}
		return key
	}
	return regexp.MustCompile(`\b[A-Z][A-Z-]+\b`).ReplaceAllString(strings.Join(words[1:], " "), "NAME")
}

// runKubectl has kubectl parse the pages' commands, and run those that only read.
func runKubectl(t *testing.T, kubectl, kubeconfig string) {
	t.Helper()
	calls, at := kubectlCalls(t)
	var tries errgroup.Group
	tries.SetLimit(goruntime.NumCPU())
	for _, words := range calls {
		tries.Go(func() error {
			if err := tryKubectl(t.Context(), kubectl, kubeconfig, words); err != nil {
				t.Errorf("%s: %s: %v", at[keyOf(words)], strings.Join(words, " "), err)
			}
			return nil
		})
	}
	_ = tries.Wait()
	if len(calls) < 40 {
		t.Errorf("%d commands were found", len(calls))
	}
	for _, wrong := range []string{"kubectl get jobreport --nope", "kubectl get jobreprts", "kubectl gett pods", "kubectl -n a scale deployment b --replica=0"} {
		if tryKubectl(t.Context(), kubectl, kubeconfig, strings.Fields(wrong)) == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}

// notServed matches kinds that the reader fills in, and those of other projects, which the API server of the tests does not serve.
var notServed = regexp.MustCompile(`^[A-Z-]+$|^network-attachment-definitions$|^clusterqueues$|^route$|^imagestreams?$|jobsets|\.v1\.kubeflow\.org$`)

func tryKubectl(ctx context.Context, kubectl, kubeconfig string, words call) error {
	arguments := slices.DeleteFunc(slices.Clone(words[1:]), func(word string) bool { return strings.HasPrefix(word, "--kubeconfig") })
	at := slices.Index(arguments, "get")
	run := at >= 0 && verb(words) == "get" && len(arguments) > at+1 && !notServed.MatchString(arguments[at+1]) && !slices.Contains(arguments, "--watch")
	if end := slices.Index(arguments, "--"); end >= 0 {
		arguments = arguments[:end]
	}
	if !run {
		arguments = append(arguments, "--help")
	}
	var stderr bytes.Buffer
	command := exec.CommandContext(ctx, kubectl, arguments...) //nolint:gosec // the pages are those of the repository
	command.Env, command.Stderr = append(os.Environ(), "KUBECONFIG="+kubeconfig), &stderr
	output, err := command.Output()
	text := stderr.String()
	switch {
	case err == nil && !run && !strings.Contains(string(output), "Usage:\n  kubectl "+verb(words)):
		return errors.New("there is no such command")
	case err != nil && run && (strings.Contains(text, "(NotFound)") || strings.Contains(text, "array index out of bounds: index 0, length 0")):
		return nil // the server has no such object, but knows its kind
	case err != nil:
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

// inlineField matches a field in the text of a page; fenced matches the blocks.
var (
	inlineField = regexp.MustCompile("`((?:spec|status)\\.[A-Za-z][A-Za-z.]*(?:\\[[^\\]]*\\][A-Za-z.]*)*[A-Za-z\\]])`")
	fenced      = regexp.MustCompile("(?ms)^ *```.*?^ *```")
)

// fieldPath matches the fields of an object in the templates of commands.
var fieldPath = regexp.MustCompile(`\.((?:spec|status|metadata)(?:\.[A-Za-z]+|\[[^\]]*\]|\?)+)`)

// checkFields: the fields of JobReports and jobs that commands and the text of pages name exist.
func checkFields(t *testing.T, crds []*apiextensions.CustomResourceDefinition) {
	t.Helper()
	schemas := map[string]*apiextensions.JSONSchemaProps{}
	for _, crd := range crds {
		schemas[crd.Spec.Names.Plural] = crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	}
	checked := 0
	for _, page := range siteOf(t) {
		blocks, _ := blocksOf(t, page)
		for _, b := range blocks {
			for line := range strings.Lines(scriptOf(b)) {
				if !strings.Contains(line, "jobreport") && !strings.Contains(line, "describe") {
					continue
				}
				for _, path := range fieldPath.FindAllStringSubmatch(line, -1) {
					checked++
					if !hasField(schemas["jobreports"], path[1]) {
						t.Errorf("%s:%d: a JobReport has no field %s", page, b.line, path[1])
					}
				}
			}
		}
	}
	// Those of APIs that migrate reads, of OpenShift and of Kueue.
	foreign := []string{"spec.cleanPodPolicy", "spec.mainContainer", "spec.mpiDistribution", "spec.podTemplateOverrides", "spec.tlsSecurityProfile", "spec.active"}
	for _, page := range siteOf(t) {
		for _, found := range inlineField.FindAllStringSubmatch(fenced.ReplaceAllString(read(t, filepath.Join(root, page)), ""), -1) {
			checked++
			has := slices.Contains(foreign, found[1])
			for _, schema := range schemas {
				has = has || hasField(schema, found[1])
			}
			if !has {
				t.Errorf("%s: no API has the field %s", page, found[1])
			}
		}
	}
	if checked < 100 {
		t.Errorf("%d fields were found", checked)
	}
	if hasField(schemas["jobreports"], "status.phases") || !hasField(schemas["jobreports"], "status.pods[].exitCode") {
		t.Error("the fields of JobReports are not those of their definition")
	}
}

// hasField reports whether a schema has a field, such as status.pods[0].node.
func hasField(schema *apiextensions.JSONSchemaProps, path string) bool {
	for name := range strings.SplitSeq(strings.NewReplacer("?", "", "[*]", "[]").Replace(path), ".") {
		name, _, _ = strings.Cut(name, "[")
		if schema.Items != nil {
			schema = schema.Items.Schema
		}
		below, has := schema.Properties[name]
		if !has {
			open := schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields
			return open || name == "metadata" || schema.AdditionalProperties != nil || schema.Type == "object" && len(schema.Properties) == 0
		}
		if name == "metadata" {
			return true
		}
		schema = &below
	}
	return true
}
