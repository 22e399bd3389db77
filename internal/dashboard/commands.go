package dashboard

import (
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"opendatahub.io/mpijob/internal/jobs"
	"opendatahub.io/mpijob/internal/phrase"
)

// Snippet is a text to copy: a command, or lines of Python.
type Snippet struct {
	Title string `json:"title"`
	// Language is sh or python.
	Language string `json:"language"`
	Text     string `json:"text"`
}

// jobCommands returns what shows a job on the command line and in Python.
func (s *Server) jobCommands(job jobs.Job) []Snippet {
	name, namespace := phrase.QuoteCommand([]string{job.Name}), phrase.QuoteCommand([]string{job.Namespace})
	all := []Snippet{
		{"Command line", "sh", s.options.Program + " describe " + name + " -n " + namespace + "\n" + s.options.Program + " logs " + name + " -n " + namespace + " -f"},
		{"Python", "python", "from openshift_ai_sdk.training import TrainingClient\n\njob = TrainingClient(namespace=" + pythonText(job.Namespace) + ").get_job(" + pythonText(job.Name) + ")\nprint(job.explain())\nfor line in job.get_logs(follow=True):\n    print(line)"},
	}
	if len(job.Status().Findings) > 0 {
		all[0].Text += "\n" + s.options.Program + " explain " + name + " -n " + namespace
	}
	return all
}

// specCommands returns what creates the job of a specification on the command line and in Python.
func (s *Server) specCommands(spec jobs.Spec) []Snippet {
	all := arguments{line: []string{"create", spec.Name}, python: []string{pythonText(spec.Name)}}
	all.text("--namespace", "namespace", spec.Namespace)
	all.number("--workers", "workers", &spec.Workers)
	all.text("--runtime", "runtime", spec.Runtime)
	all.text("--image", "image", spec.Image)
	all.resources(spec)
	all.number("--slots", "slots_per_worker", spec.Slots)
	all.text("--implementation", "mpi_implementation", spec.Implementation)
	all.text("--queue", "queue", spec.Queue)
	all.text("--priority", "priority", spec.Priority)
	all.environment(spec)
	all.number("--retries", "retries", spec.Retries)
	all.duration("--deadline", "deadline", spec.Deadline)
	all.text("--rdma", "rdma", spec.RDMA)
	if spec.Profile {
		all.line = append(all.line, "--profile")
		all.python = append(all.python, "profile=True")
	}
	if spec.WaitForQuota {
		all.line = append(all.line, "--wait-for-quota")
		all.python = append(all.python, "wait_for_quota=True")
	}
	if spec.TTL != nil {
		all.anyDuration("--ttl", "ttl", *spec.TTL)
	}
	all.duration("--gang-timeout", "gang_timeout", spec.GangTimeout)
	if len(spec.MPIFlags) > 0 {
		all.add("--mpi-flags", phrase.QuoteCommand(spec.MPIFlags), "mpi_flags", pythonList(spec.MPIFlags))
	}
	all.pods(spec)
	if spec.RunAsUser != nil {
		user := strconv.FormatInt(*spec.RunAsUser, 10)
		all.add("--run-as-user", user, "run_as_user", user)
	}
	if spec.Suspend {
		all.line = append(all.line, "--suspend")
		all.python = append(all.python, "suspend=True")
	}
	all.add("--command", phrase.QuoteCommand(spec.Command), "command", pythonList(spec.Command))
	python, imports := strings.Join(all.python, ",\n    "), "MPIJob"
	if strings.Contains(python, "ResourceRequirements(") {
		imports += ", ResourceRequirements"
	}
	return []Snippet{
		{"Command line", "sh", s.options.Program + " " + phrase.QuoteCommand(all.line)},
		{"Python", "python", "from openshift_ai_sdk.training import " + imports + "\n\njob = MPIJob(\n    " + python + ",\n)\njob.create()"},
	}
}

// arguments collects what creates a job: the words of a command line, and the arguments of a Python class.
type arguments struct{ line, python []string }

// add adds a flag with its value, and an argument with its value in Python.
func (a *arguments) add(flag, value, argument, literal string) {
	a.line = append(a.line, flag, value)
	a.python = append(a.python, argument+"="+literal)
}

// text adds a text that is not empty.
func (a *arguments) text(flag, argument, value string) {
	if value != "" {
		a.add(flag, value, argument, pythonText(value))
	}
}

// number adds a number that is set.
func (a *arguments) number(flag, argument string, value *int32) {
	if value != nil {
		text := strconv.Itoa(int(*value))
		a.add(flag, text, argument, text)
	}
}

// duration adds a time that is set.
func (a *arguments) duration(flag, argument string, value time.Duration) {
	if value > 0 {
		a.anyDuration(flag, argument, value)
	}
}

// anyDuration adds a time that may be 0.
func (a *arguments) anyDuration(flag, argument string, value time.Duration) {
	a.add(flag, value.String(), argument, pythonText(strconv.FormatInt(int64(value/time.Second), 10)+"s"))
}

// resources adds what each worker requests.
func (a *arguments) resources(spec jobs.Spec) {
	each := arguments{}
	if spec.GPU > 0 {
		each.number("--gpu", "gpu", &spec.GPU)
		if spec.GPUResource != "nvidia.com/gpu" {
			each.text("--gpu-resource", "gpu_resource", spec.GPUResource)
		}
	}
	each.text("--cpu", "cpu", spec.CPU)
	each.text("--memory", "memory", spec.Memory)
	if a.line = append(a.line, each.line...); len(each.python) > 0 {
		a.python = append(a.python, "resources=ResourceRequirements("+strings.Join(each.python, ", ")+")")
	}
}

// pods adds what all pods have: volumes, nodes, and the size of the launcher.
func (a *arguments) pods(spec jobs.Spec) {
	a.volumes(spec)
	a.mapping("--node-selector", "node_selector", spec.NodeSelector)
	var tolerations []string
	for _, toleration := range spec.Tolerations {
		if text, is := jobs.TolerationText(toleration); is {
			tolerations = append(tolerations, text)
		}
	}
	a.list("--toleration", "tolerations", tolerations)
	topology := spec.Topology
	if spec.TopologyPreferred {
		topology = "prefer:" + topology
	}
	a.text("--topology", "topology", topology)
	a.list("--image-pull-secret", "image_pull_secrets", spec.ImagePullSecrets)
	a.text("--service-account", "service_account", spec.ServiceAccount)
	a.text("--workdir", "workdir", spec.WorkDir)
	a.mapping("--label", "labels", spec.Labels)
	if spec.GracePeriod != nil {
		a.anyDuration("--grace-period", "grace_period", *spec.GracePeriod)
	}
	var launcher arguments
	launcher.text("--launcher-cpu", "cpu", spec.LauncherCPU)
	launcher.text("--launcher-memory", "memory", spec.LauncherMemory)
	if a.line = append(a.line, launcher.line...); len(launcher.python) > 0 {
		a.python = append(a.python, "launcher_resources=ResourceRequirements("+strings.Join(launcher.python, ", ")+")")
	}
}

// volumes adds volumes, shared memory and the folder for results. In Python, a mount of a name without a volume is that of a claim.
func (a *arguments) volumes(spec jobs.Spec) {
	var volumes, mounts []string
	for i, volume := range spec.Volumes {
		if volume.Source == jobs.VolumeMemory && volume.Path == sharedMemory {
			a.text("--shm", "shm", volume.Size)
			continue
		}
		a.line = append(a.line, "--volume", volume.String())
		name := volume.Name
		if source := pythonSource(volume); source != "" {
			name = "volume-" + strconv.Itoa(i)
			volumes = append(volumes, `{"name": `+pythonText(name)+`, `+source+`}`)
		}
		mount := `{"name": ` + pythonText(name) + `, "mountPath": ` + pythonText(volume.Path)
		if volume.ReadOnly {
			mount += `, "readOnly": True`
		}
		mounts = append(mounts, mount+"}")
	}
	for _, argument := range []struct {
		name    string
		entries []string
	}{{"volumes", volumes}, {"volume_mounts", mounts}} {
		if len(argument.entries) > 0 {
			a.python = append(a.python, argument.name+"=["+strings.Join(argument.entries, ", ")+"]")
		}
	}
	if spec.Output != nil {
		a.text("--output-dir", "output_dir", spec.Output.String())
	}
}

// pythonSource returns the source of a volume as Kubernetes writes it; empty for a claim.
func pythonSource(volume jobs.Volume) string {
	switch volume.Source {
	case jobs.VolumeConfigMap:
		return `"configMap": {"name": ` + pythonText(volume.Name) + "}"
	case jobs.VolumeSecret:
		return `"secret": {"secretName": ` + pythonText(volume.Name) + "}"
	case jobs.VolumeMemory:
		return `"emptyDir": {"medium": "Memory", "sizeLimit": ` + pythonText(volume.Size) + "}"
	case jobs.VolumeScratch:
		return `"emptyDir": {"sizeLimit": ` + pythonText(volume.Size) + "}"
	}
	return ""
}

// list adds texts: a flag for each, and an argument for all.
func (a *arguments) list(flag, argument string, values []string) {
	for _, value := range values {
		a.line = append(a.line, flag, value)
	}
	if len(values) > 0 {
		a.python = append(a.python, argument+"="+pythonList(values))
	}
}

// mapping adds names with values: a flag for each, and an argument for all.
func (a *arguments) mapping(flag, argument string, values map[string]string) {
	var entries []string
	for _, name := range keys(values) {
		a.line = append(a.line, flag, name+"="+values[name])
		entries = append(entries, pythonText(name)+": "+pythonText(values[name]))
	}
	if len(entries) > 0 {
		a.python = append(a.python, argument+"={"+strings.Join(entries, ", ")+"}")
	}
}

// environment adds data connections and variables.
func (a *arguments) environment(spec jobs.Spec) {
	a.list("--connection", "connections", spec.Connections)
	var env []string
	for _, variable := range spec.Env {
		a.line = append(a.line, "--env", variable.Name+"="+variable.Value)
		env = append(env, pythonText(variable.Name)+": "+pythonText(variable.Value))
	}
	if len(env) > 0 {
		a.python = append(a.python, "env={"+strings.Join(env, ", ")+"}")
	}
}

// pythonText returns a string literal of Python. Go's are valid ones, except for escapes that printable texts do not need.
func pythonText(text string) string { return strconv.QuoteToASCII(text) }

func pythonList(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = pythonText(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// templateCommand returns the command that creates the job of a template.
func templateCommand(request *SpecRequest, object *unstructured.Unstructured) []string {
	line := []string{"templates", "apply", request.Template, object.GetName(), "-n", object.GetNamespace()}
	for _, name := range keys(request.Values) {
		line = append(line, "--param", name+"="+request.Values[name])
	}
	return line
}
