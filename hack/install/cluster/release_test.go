package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/kube"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/hack/install/chart"
	"opendatahub.io/mpijob/hack/install/manifests"
)

// releaseJobs is the namespace of the jobs of TestReleasedFiles.
const releaseJobs = "release-test"

// trainJob runs a TrainJob with a runtime of the release, through the SDK.
const trainJob = `
from openshift_ai_sdk.training import MPIJob
job = MPIJob("pi-sdk", "` + releaseJobs + `", workers=2, runtime="mpi-openmpi", command="pi")
job.create()
print(job.wait_for_completion(timeout="3m").phase)
print(job.get_logs())
`

// TestReleasedFiles installs the files of a release on a cluster without the operator, as its user does: the manifests, and then the chart,
// with the images of the release's registry. It runs an MPIJob with the command line and a TrainJob with the SDK, and removes everything.
func TestReleasedFiles(t *testing.T) {
	folder, kubeconfig := os.Getenv("RELEASE"), os.Getenv("KUBECONFIG")
	if folder == "" {
		t.Skip("RELEASE names no folder of a release; make release-check does")
	}
	if kubeconfig == "" {
		t.Fatal("RELEASE names a release, and KUBECONFIG no cluster to install it on")
	}
	r := newRelease(t, folder, connect(t, kubeconfig))
	python := r.installSDK()
	r.checkFiles()
	r.installCLI()

	r.saveRuntimes()
	r.run("kubectl", "apply", "--server-side", "-f", r.file("install.yaml"))
	r.run("kubectl", "-n", namespace, "rollout", "status", "deployment/mpijob-operator", "--timeout=180s")
	r.wantOperator()
	r.run("kubectl", "apply", "--server-side", "-f", r.file("runtimes-kubernetes.yaml"))
	restrict(r.api, releaseJobs)
	t.Cleanup(func() { _ = r.Delete(context.Background(), object("v1", "Namespace", "", releaseJobs)) })
	r.runMPIJob("pi")
	r.want("pi is approximately 3.14", python(), "-c", trainJob)
	r.wantPulls(namespace, "mpijob-operator")
	r.wantPulls(releaseJobs, "mpijob-agent", "mpi-sample-openmpi")
	r.run("kubectl", "odh", "mpijob", "doctor", "-n", releaseJobs)

	r.run("kubectl", "delete", "mpijobs,trainjobs", "--all", "-n", releaseJobs)
	r.run("kubectl", "delete", "-f", r.file("runtimes-kubernetes.yaml"))
	r.run("kubectl", "delete", "-f", r.file("install.yaml"), "-l", "!mpi.opendatahub.io/keep")
	r.wantCRDs(true)
	if reports := r.list("mpi.opendatahub.io/v1alpha1", "JobReport", releaseJobs); len(reports) != 2 {
		t.Errorf("after the removal of the operator there are %d reports, want those of both jobs", len(reports))
	}
	r.run("kubectl", "delete", "--ignore-not-found", "-f", r.file("install.yaml"))
	r.wantNothing()

	r.installChart(kubeconfig)
	r.wantNothing()
}

// installChart installs the chart, runs a job, and removes the release with its CRDs and namespace.
func (r released) installChart(kubeconfig string) {
	r.t.Helper()
	packed, err := chart.Load(r.file("mpijob-operator-" + strings.TrimPrefix(r.version, "v") + ".tgz"))
	if err != nil {
		r.t.Fatal(err)
	}
	h := newHelm(r.t, kubeconfig, namespace, kube.StatusWatcherStrategy, "{runtimes: {enabled: true}}")
	done := h.step("helm install")
	if err := h.install(packed, "", false); err != nil {
		r.t.Fatalf("helm install: %v", err)
	}
	done()
	r.wantOperator()
	wantCheck(h)
	r.runMPIJob("pi-chart")
	r.run("kubectl", "delete", "mpijobs", "--all", "-n", releaseJobs)
	h.mustUninstall()
	r.wantCRDs(true)
	r.run("kubectl", append([]string{"delete", "crd"}, crdNames...)...)
	r.run("kubectl", "delete", "namespace", namespace)
}

// released is the output of hack/release.sh.
type released struct {
	api
	folder, version string
	// images are NAME:TAG@DIGEST, by the last part of the name.
	images map[string]string
	// path is a folder with the command line, for PATH.
	path string
}

func newRelease(t *testing.T, folder string, a api) released {
	t.Helper()
	r := released{api: a, folder: folder, version: filepath.Base(folder), images: map[string]string{}, path: t.TempDir()}
	text, err := os.ReadFile(r.file("images.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for reference := range strings.FieldsSeq(string(text)) {
		name, _, _ := strings.Cut(reference[strings.LastIndex(reference, "/")+1:], ":")
		r.images[name] = reference
	}
	return r
}

func (r released) file(name string) string { return filepath.Join(r.folder, name) }

// run runs a command, logs how long it takes, and returns its output.
func (r released) run(name string, args ...string) string {
	r.t.Helper()
	start := time.Now()
	output, err := r.command(name, args...).CombinedOutput()
	if err != nil {
		r.t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
	shown, _, _ := strings.Cut(filepath.Base(name)+" "+strings.ReplaceAll(strings.Join(args, " "), r.folder+"/", ""), "\n")
	r.t.Logf("%5.1f s  %.120s", time.Since(start).Seconds(), shown)
	return string(output)
}

// want runs a command whose output must contain a text.
func (r released) want(text, name string, args ...string) {
	r.t.Helper()
	if output := r.run(name, args...); !strings.Contains(output, text) {
		r.t.Errorf("%s prints\n%s\nwant %q", filepath.Base(name), output, text)
	}
}

func (r released) command(name string, args ...string) *exec.Cmd {
	command := exec.CommandContext(r.t.Context(), name, args...)
	command.Env = append(os.Environ(), "PATH="+r.path+":"+os.Getenv("PATH"))
	command.Dir = r.folder
	return command
}

// checkFiles checks the checksums, that the registry has the images, and that the SBOMs have components.
func (r released) checkFiles() {
	r.t.Helper()
	r.run("sha256sum", "--check", "--quiet", "checksums.txt")
	for name, reference := range r.images {
		repository, digest, _ := strings.Cut(reference, "@")
		repository = repository[:strings.LastIndex(repository, ":")]
		host, path, _ := strings.Cut(repository, "/")
		request, err := http.NewRequestWithContext(r.t.Context(), http.MethodHead, "http://"+host+"/v2/"+path+"/manifests/"+digest, nil)
		if err != nil {
			r.t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			r.t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			r.t.Errorf("the registry responds %s for %s", response.Status, reference)
		}
		r.wantSBOM(name)
	}
	r.wantSBOM("kubectl-odh-mpijob")
	r.wantSBOM("openshift-ai-sdk")
}

func (r released) wantSBOM(name string) {
	r.t.Helper()
	text, err := os.ReadFile(r.file(name + ".cdx.json"))
	if err != nil {
		r.t.Fatal(err)
	}
	var document struct {
		Format     string `json:"bomFormat"`
		Components []any
	}
	if err := json.NewDecoder(bytes.NewReader(text)).Decode(&document); err != nil || document.Format != "CycloneDX" || len(document.Components) == 0 {
		r.t.Errorf("the SBOM of %s has the format %q and %d components, %v", name, document.Format, len(document.Components), err)
	}
}

// installCLI unpacks the command line as a plug-in of kubectl.
func (r released) installCLI() {
	r.t.Helper()
	r.run("tar", "-xzf", r.file("odh-mpijob_"+r.version+"_linux_amd64.tar.gz"), "-C", r.path, "kubectl-odh-mpijob")
	r.want(r.version, "kubectl", "odh", "mpijob", "version", "--client")
}

// installSDK starts to install the wheel into a new environment: other steps do not wait for it. The function that it returns waits, and
// returns the environment's Python. It uses pip, or the faster uv that UV names.
func (r released) installSDK() (python func() string) {
	wheel, environment := r.file("openshift_ai_sdk-"+strings.TrimPrefix(r.version, "v")+"-py3-none-any.whl"), r.t.TempDir()
	start := time.Now()
	ended := make(chan struct{})
	var failed error
	var took time.Duration
	go func() {
		defer close(ended)
		create, install := []string{"python3", "-m", "venv", environment}, []string{"python3", "-m", "pip", "--python", environment, "install", "--quiet", wheel}
		if uv := os.Getenv("UV"); uv != "" {
			create, install = []string{uv, "venv", "--quiet", "--clear", environment}, []string{uv, "pip", "install", "--quiet", "--python", environment, wheel}
		}
		for _, args := range [][]string{create, install} {
			if output, err := r.command(args[0], args[1:]...).CombinedOutput(); err != nil {
				failed = fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, output)
				return
			}
		}
		took = time.Since(start)
	}()
	// The end of the test ends the command, which writes into a folder of the test.
	r.t.Cleanup(func() { <-ended })
	return func() string {
		r.t.Helper()
		<-ended
		if failed != nil {
			r.t.Fatal(failed)
		}
		r.t.Logf("%5.1f s  install %s, at the same time", took.Seconds(), filepath.Base(wheel))
		return filepath.Join(environment, "bin", "python")
	}
}

// saveRuntimes removes runtimes with the names of the release's, and creates them again at the end of the test.
func (r released) saveRuntimes() {
	r.t.Helper()
	text, err := os.ReadFile(r.file("runtimes-kubernetes.yaml"))
	if err != nil {
		r.t.Fatal(err)
	}
	runtimes, err := manifests.Parse(text)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, runtime := range runtimes {
		if !r.exists(runtime) {
			continue
		}
		saved := object(runtime.GetAPIVersion(), runtime.GetKind(), "", runtime.GetName())
		saved.SetLabels(runtime.GetLabels())
		saved.SetAnnotations(runtime.GetAnnotations())
		saved.Object["spec"] = runtime.Object["spec"]
		r.run("kubectl", "delete", "clustertrainingruntime", saved.GetName())
		r.t.Cleanup(func() {
			_ = r.Delete(context.Background(), saved.DeepCopy())
			r.eventually("the runtime "+saved.GetName()+" is there again", time.Minute, func() bool {
				return r.Create(context.Background(), saved.DeepCopy()) == nil
			})
		})
	}
}

// wantOperator fails unless the operator has the version and the images of the release, by their digests.
func (r released) wantOperator() {
	r.t.Helper()
	deployment := r.get(object("apps/v1", "Deployment", namespace, "mpijob-operator"))
	if got := deployment.GetLabels()["app.kubernetes.io/version"]; got != r.version {
		r.t.Errorf("the operator has the version %q, want %q", got, r.version)
	}
	text, err := json.Marshal(deployment.Object["spec"])
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range []string{"mpijob-operator", "mpijob-agent"} {
		if !bytes.Contains(text, []byte(r.images[name])) {
			r.t.Errorf("the Deployment of the operator does not name %s", r.images[name])
		}
	}
	if output := r.run("kubectl", "odh", "mpijob", "version"); strings.Count(output, r.version) < 3 {
		r.t.Errorf("the versions of client, operator and agent are\n%s\nwant %s", output, r.version)
	}
}

// wantPulls fails unless the kubelets have pulled images of the release for the pods of a namespace.
func (r released) wantPulls(in string, names ...string) {
	r.t.Helper()
	for _, name := range names {
		pulled := fmt.Sprintf("Successfully pulled image %q", r.images[name])
		r.eventually(pulled, 30*time.Second, func() bool {
			for _, event := range r.list("v1", "Event", in) {
				if message, _, _ := unstructured.NestedString(event.Object, "message"); strings.HasPrefix(message, pulled) {
					r.t.Log(message)
					return true
				}
			}
			return false
		})
	}
}

// runMPIJob runs a job with the command line to its end.
func (r released) runMPIJob(name string) {
	r.t.Helper()
	r.run("kubectl", "odh", "mpijob", "create", name, "-n", releaseJobs, "--workers", "2", "--image", r.images["mpi-sample-openmpi"], "--wait", "--command", "pi")
	r.want("pi is approximately 3.14", "kubectl", "odh", "mpijob", "logs", name, "-n", releaseJobs)
	r.t.Log(r.run("kubectl", "odh", "mpijob", "events", name, "-n", releaseJobs))
}

// wantNothing fails if an object of the manifests is left.
func (r released) wantNothing() {
	r.t.Helper()
	text, err := os.ReadFile(r.file("install.yaml"))
	if err != nil {
		r.t.Fatal(err)
	}
	objects, err := manifests.Parse(text)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, o := range objects {
		r.eventually(manifests.Key(o)+" is removed", time.Minute, func() bool { return !r.exists(o.DeepCopy()) })
	}
}
