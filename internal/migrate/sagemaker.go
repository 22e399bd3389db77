package migrate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
)

// What SageMaker's training toolkit reads (github.com/aws/sagemaker-training-toolkit, params.py, mpi.py), and where it
// has files.
const (
	toolkitPrefix = "sagemaker_"
	mpiEnabled    = "sagemaker_mpi_enabled"
	perHost       = "sagemaker_mpi_num_of_processes_per_host"
	inAll         = "sagemaker_mpi_num_processes"
	mpiOptions    = "sagemaker_mpi_custom_mpi_options"
	program       = "sagemaker_program"
	submitted     = "sagemaker_submit_directory"

	workFolder  = "/opt/ml"
	workVolume  = "opt-ml"
	modelFolder = workFolder + "/model"
	// share is how much of an instance's CPU and memory a pod asks for, in percent: the rest of a node is its kubelet's,
	// and that of pods that run on every node.
	share = 90
)

// FromSageMaker turns a training job of SageMaker into a TrainJob or, where asked, an MPIJob: the request that
// CreateTrainingJob takes, or what DescribeTrainingJob answers. It must be one that its toolkit runs by MPI. All that is
// wrong with it is told at once.
func FromSageMaker(from map[string]any, asMPIJob bool, options Options) (Result, field.ErrorList) {
	c := &fromSageMaker{conversion: conversion{left: clone(from).(tree)}, options: options, asMPIJob: asMPIJob}
	c.drop(answered...)
	c.identity()
	c.hyperparameters()
	c.machines()
	c.program()
	c.inputs()
	c.outputs()
	c.limits()
	if len(c.errs) > 0 {
		return Result{}, c.errs
	}
	var object tree
	if asMPIJob {
		object = c.mpiJob()
		if errs := runnable(object); len(errs) > 0 {
			return Result{}, errs
		}
	} else {
		object = c.trainJob()
	}
	return c.result(object, func(string) string { return "there is nothing like it here" }), nil
}

// answered are the fields that DescribeTrainingJob adds, none of which says what the job is.
var answered = []string{
	"TrainingJobArn", "TuningJobArn", "LabelingJobArn", "AutoMLJobArn", "ModelArtifacts", "TrainingJobStatus", "SecondaryStatus", "FailureReason",
	"CreationTime", "TrainingStartTime", "TrainingEndTime", "LastModifiedTime", "SecondaryStatusTransitions", "FinalMetricDataList", "TrainingTimeInSeconds",
	"BillableTimeInSeconds", "ProfilingStatus", "WarmPoolStatus", "ResponseMetadata", "DebugRuleEvaluationStatuses", "ProfilerRuleEvaluationStatuses",
}

type fromSageMaker struct {
	conversion
	options  Options
	asMPIJob bool

	name, image   string
	hyper         map[string]string
	command       []string
	env           []tree
	nodes, slots  int64
	resources     tree
	deadline      int64
	connection    string
	hasConnection bool
}

// where is a field of the new job: of a TrainJob, or of the templates of an MPIJob.
func (c *fromSageMaker) where(trainJob, mpiJob string) string {
	if c.asMPIJob {
		return mpiJob
	}
	return trainJob
}

func (c *fromSageMaker) imageField() string {
	return c.where(imageField, launcherPod+firstOf+".image and Worker")
}

func (c *fromSageMaker) identity() {
	const at = "TrainingJobName"
	name, _ := c.text(at)
	c.name = strings.ToLower(name)
	if c.options.Name != "" {
		c.name = c.options.Name
	}
	switch {
	case c.name == "":
		c.fail(field.Required(field.NewPath(at), "must be there; or say --name"))
		return
	case c.name != name:
		c.tell(Changed, at, "metadata.name", "%s is now %s", name, c.name)
	default:
		c.moved(at, "metadata.name")
	}
	const most = validation.DNS1123LabelMaxLength - len("-launcher-0-0")
	if problems := validation.IsDNS1035Label(c.name); len(problems) > 0 || len(c.name) > most {
		c.fail(field.Invalid(field.NewPath(at), c.name, fmt.Sprintf("is no name of a job here: at most %d letters, digits and dashes, a letter first; say another by --name", most)))
	}
}

// hyperparameters are texts, most of which hold JSON: so the SDK writes them.
func (c *fromSageMaker) hyperparameters() {
	c.hyper = map[string]string{}
	all, _ := taken[tree](&c.conversion, "HyperParameters")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		text, is := all[name].(string)
		if !is {
			c.fail(field.Invalid(field.NewPath("HyperParameters").Key(name), all[name], "must be text"))
			continue
		}
		c.hyper[name] = pythons(text)
	}
	if !strings.EqualFold(c.hyper[mpiEnabled], "true") {
		c.fail(field.Invalid(field.NewPath("HyperParameters").Key(mpiEnabled), c.hyper[mpiEnabled],
			"must be \"true\": only jobs that SageMaker runs by MPI can be converted (distribution={\"mpi\": {\"enabled\": True}} of an estimator). If the image starts MPI by itself, set it all the same"))
	}
}

// pythons is how Python writes a value that is JSON, as the toolkit puts it on a command line. What is no JSON stays.
func pythons(text string) string {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil || decoder.More() {
		return text
	}
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		return map[bool]string{true: "True", false: "False"}[v]
	case string:
		return v
	case json.Number:
		return v.String()
	case map[string]any:
		var parts []string
		for _, key := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, fmt.Sprintf("%s=%v", key, v[key]))
		}
		return strings.Join(parts, ",")
	}
	return text
}

func (c *fromSageMaker) machines() {
	const at = "ResourceConfig"
	if groups, _ := c.take(at, "InstanceGroups"); groups != nil && len(leaves(groups, "x")) > 0 {
		c.fail(field.Forbidden(field.NewPath(at, "InstanceGroups"), "all nodes of a job are of one size here: give it one InstanceType and InstanceCount"))
	}
	c.take(at, "KeepAlivePeriodInSeconds")
	c.nodes, _ = c.number(at, "InstanceCount")
	c.slots = 1
	if text, found := c.hyper[perHost]; found {
		if n, err := strconv.ParseInt(text, 10, 32); err == nil && n > 0 {
			c.slots = n
		} else {
			c.fail(field.Invalid(field.NewPath("HyperParameters").Key(perHost), text, "must be a whole number, 1 or more"))
		}
		c.moved("HyperParameters["+perHost+"]", c.where(slotsField, "spec.slotsPerWorker"))
	}
	count := field.NewPath(at, "InstanceCount")
	switch {
	case c.nodes < 1:
		c.fail(field.Invalid(count, c.nodes, "must be 1 or more"))
	case c.nodes == 1 && c.asMPIJob:
		c.tell(Changed, at+".InstanceCount", launcherSpec, "one instance is a launcher without workers, which runs all ranks itself")
	case c.nodes == 1:
		c.fail(field.Invalid(count, c.nodes, "a TrainJob of an MPI runtime has 2 pods at least: have an MPIJob of its launcher alone made (--to v2beta1), or use 2 instances"))
	default:
		c.tell(Moved, at+".InstanceCount", c.where(nodesField, workerSpec+".replicas, and the launcher"), "")
	}
	c.size()
	if volume, found := c.number(at, "VolumeSizeInGB"); found && volume > 0 {
		c.tell(Todo, at+".VolumeSizeInGB", "", "%d GB for %s: the job has the nodes' own disks there (an emptyDir); have a PersistentVolumeClaim mounted in its place if that is not enough", volume, workFolder)
	}
	c.take(at, "VolumeKmsKeyId")
}

// size is what a pod asks for in place of an instance.
func (c *fromSageMaker) size() {
	path := field.NewPath("ResourceConfig", "InstanceType")
	name, _ := c.text("ResourceConfig", "InstanceType")
	parts := strings.Split(name, ".")
	var of Instance
	known := false
	if len(parts) == 3 && parts[0] == "ml" {
		of, known = instance(parts[1], parts[2])
	}
	switch {
	case c.options.Instance != nil:
		of = *c.options.Instance
	case name == "":
		c.fail(field.Required(path, "must be there, such as ml.p4d.24xlarge"))
		return
	case !known:
		c.fail(field.Invalid(path, name, fmt.Sprintf("is not known here (families: %s): say what a node has by --cpu, --memory and --gpu", strings.Join(knownFamilies(), ", "))))
		return
	}
	cpus, memory := max(of.CPUs*share/100, 1), max(of.MemoryGiB*share/100, 1)
	c.resources = tree{
		"requests": tree{"cpu": strconv.FormatInt(cpus, 10), "memory": fmt.Sprintf("%dGi", memory)},
		"limits":   tree{"memory": fmt.Sprintf("%dGi", memory)},
	}
	devices := ""
	if of.Devices > 0 {
		device := cmp.Or(of.Device, nvidia)
		object(c.resources, "limits")[device] = strconv.FormatInt(of.Devices, 10)
		devices = fmt.Sprintf(" and %d of %s", of.Devices, device)
		c.addEnv("SM_NUM_GPUS", strconv.FormatInt(of.Devices, 10))
		if of.Devices != c.slots {
			c.tell(Todo, "HyperParameters["+perHost+"]", "", "%d ranks on each node with %d devices; MPI programs for GPUs mostly want a rank for each GPU", c.slots, of.Devices)
		}
	}
	c.tell(Changed, path.String(), c.where(sizeField, launcherPod+firstOf+".resources and Worker"),
		"%s has %d vCPUs, %d GiB%s; a pod asks for %d%% of CPU and memory, %d and %d GiB, so that it fits on a node of that size", cmp.Or(name, "the instance"), of.CPUs, of.MemoryGiB, devices, share, cpus, memory)
}

func (c *fromSageMaker) addEnv(name, value string) {
	if !slices.ContainsFunc(c.env, func(have tree) bool { return have["name"] == name }) {
		c.env = append(c.env, tree{"name": name, "value": value})
	}
}

// program is what mpirun starts, put together as the toolkit does it.
func (c *fromSageMaker) program() {
	const at = "AlgorithmSpecification"
	c.image, _ = c.text(at, "TrainingImage")
	if c.image == "" {
		c.fail(field.Required(field.NewPath(at, "TrainingImage"), "must name the image; algorithms of SageMaker's marketplace (AlgorithmName) run nowhere else"))
	} else {
		c.moved(at+".TrainingImage", c.imageField())
		if strings.Contains(c.image, ".dkr.ecr.") {
			c.tell(Todo, at+".TrainingImage", "", "the image is in a registry of Amazon's that asks who you are: copy it to yours, or make a pull secret and link it to the service account of the pods")
		}
		c.tell(Todo, at+".TrainingImage", "", "pods run as another user than root: the image must allow that; it needs mpirun of Open MPI, and neither sshd nor SageMaker's toolkit")
	}
	for _, name := range []string{"TrainingInputMode", "EnableSageMakerMetricsTimeSeries", "MetricDefinitions"} {
		c.take(at, name)
	}
	entry, arguments := c.list(at, "ContainerEntrypoint"), c.list(at, "ContainerArguments")
	ranks := c.nodes * c.slots
	if text, found := c.hyper[inAll]; found {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			c.fail(field.Invalid(field.NewPath("HyperParameters").Key(inAll), text, "must be a whole number, 1 or more"))
		}
		ranks = n
	}
	c.command = []string{"mpirun", "-np", strconv.FormatInt(ranks, 10)}
	c.command = append(c.command, c.customOptions()...)
	started := c.started(entry)
	c.command = append(c.command, append(started, arguments...)...)
	c.command = append(c.command, c.arguments(len(entry) == 0)...)
	to := c.where(commandField, launcherPod+firstOf+".command")
	c.tell(Changed, "HyperParameters", to, "mpirun starts the program with what the hyperparameters say as its arguments, sorted by name, as SageMaker's toolkit does")
	c.variables()
}

func (c *fromSageMaker) list(path ...string) []string {
	list, _ := taken[[]any](&c.conversion, path...)
	return texts(list)
}

// customOptions are those that the user has for mpirun. The toolkit takes one of them for itself.
func (c *fromSageMaker) customOptions() []string {
	words := strings.Fields(c.hyper[mpiOptions])
	if len(words) == 0 {
		return nil
	}
	var kept []string
	for i := 0; i < len(words); i++ {
		switch name, value, joined := strings.Cut(words[i], "="); {
		case name == "--NCCL_DEBUG" && joined:
			c.addEnv("NCCL_DEBUG", value)
		case name == "--NCCL_DEBUG" && i+1 < len(words):
			i++
			c.addEnv("NCCL_DEBUG", words[i])
		default:
			kept = append(kept, words[i])
		}
	}
	c.moved("HyperParameters["+mpiOptions+"]", c.where(commandField, launcherPod+firstOf+".command"))
	if strings.Contains(c.hyper[mpiOptions], "if_include") {
		c.tell(Todo, "HyperParameters["+mpiOptions+"]", "", "names a network interface: pods mostly have eth0 alone")
	}
	return kept
}

// started is the program itself.
func (c *fromSageMaker) started(entry []string) []string {
	if len(entry) > 0 {
		c.moved("AlgorithmSpecification.ContainerEntrypoint", c.where(commandField, launcherPod+firstOf+".command"))
		return entry
	}
	script := c.hyper[program]
	path := "HyperParameters[" + program + "]"
	if script == "" {
		c.fail(field.Required(field.NewPath("HyperParameters").Key(program), "must name the program that each rank runs, such as \"train.py\"; or AlgorithmSpecification.ContainerEntrypoint does"))
		return nil
	}
	source := cmp.Or(c.hyper[submitted], "the folder that SageMaker got")
	c.tell(Todo, path, "", "put %s from %s into the image, in its working folder, or on a volume: nothing unpacks it here", script, source)
	if strings.HasSuffix(script, ".py") {
		c.tell(Changed, path, "", "Python runs it by mpi4py, as in SageMaker, so that an exception in one rank ends all: the image needs mpi4py, or leave \"-m mpi4py\" out")
		return []string{"python", "-m", "mpi4py", script}
	}
	return []string{"/bin/sh", script}
}

// arguments are the hyperparameters that are not the toolkit's own.
func (c *fromSageMaker) arguments(forToolkit bool) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.hyper)) {
		value := c.hyper[name]
		switch {
		case name == "_tuning_objective_metric":
		case strings.HasPrefix(name, toolkitPrefix):
			c.toolkits(name, value)
		case !forToolkit:
			c.tell(Todo, "HyperParameters["+name+"]", "", "is in no file %s/input/config/hyperparameters.json here, where the image may read it: it is given as an argument", workFolder)
			fallthrough
		default:
			dashes := "--"
			if len(name) == 1 {
				dashes = "-"
			}
			all = append(all, dashes+name, value)
		}
	}
	return all
}

// toolkits is a hyperparameter for SageMaker's toolkit, or for one of its libraries.
func (c *fromSageMaker) toolkits(name, value string) {
	switch {
	case slices.Contains([]string{mpiEnabled, perHost, inAll, mpiOptions, program, submitted}, name):
	case slices.Contains([]string{"sagemaker_job_name", "sagemaker_region", "sagemaker_container_log_level", "sagemaker_enable_cloudwatch_metrics", "sagemaker_s3_output"}, name):
	case strings.Contains(name, "distributed") && strings.EqualFold(value, "true"), name == "sagemaker_parameter_server_enabled" && strings.EqualFold(value, "true"):
		c.tell(Lost, "HyperParameters["+name+"]", "", "SageMaker's own library works nowhere else: have the program use Horovod, or torch.distributed with NCCL or MPI")
	default:
		c.tell(Lost, "HyperParameters["+name+"]", "", "is for SageMaker's toolkit alone")
	}
}

// variables are the job's own, and those that programs know from the toolkit.
func (c *fromSageMaker) variables() {
	own, _ := taken[tree](&c.conversion, "Environment")
	for _, name := range slices.Sorted(maps.Keys(own)) {
		c.addEnv(name, fmt.Sprint(own[name]))
	}
	if len(own) > 0 {
		c.moved("Environment", c.where(envField, launcherPod+firstOf+".env and Worker"))
	}
	c.addEnv("SM_MODEL_DIR", modelFolder)
	c.addEnv("SM_OUTPUT_DATA_DIR", workFolder+"/output/data")
	c.tell(Todo, "", c.where(envField, launcherPod+firstOf+".env and Worker"), "SM_MODEL_DIR, SM_OUTPUT_DATA_DIR, SM_NUM_GPUS and SM_CHANNEL_<name> are set as SageMaker's toolkit does; a program that reads others, such as SM_HOSTS or SM_CURRENT_HOST, asks MPI in their stead")
}

var bucketURI = regexp.MustCompile(`^s3://([^/]+)/?(.*)$`)

// inputs are the channels: a data connection brings the credentials, and somebody the data.
func (c *fromSageMaker) inputs() {
	channels, _ := taken[[]any](&c.conversion, "InputDataConfig")
	for i, channel := range entries(channels) {
		name, _ := channel["ChannelName"].(string)
		here := fmt.Sprintf("InputDataConfig[%s]", cmp.Or(name, strconv.Itoa(i)))
		folder := workFolder + "/input/data/" + name
		if name == "" {
			c.fail(field.Required(field.NewPath("InputDataConfig").Index(i).Child("ChannelName"), "must be there"))
			continue
		}
		c.addEnv("SM_CHANNEL_"+strings.ToUpper(name), folder)
		uri, _ := look(channel, "DataSource", "S3DataSource")["S3Uri"].(string)
		parts := bucketURI.FindStringSubmatch(uri)
		if parts == nil {
			if uri != "" {
				c.fail(field.Invalid(field.NewPath("InputDataConfig").Index(i).Child("DataSource", "S3DataSource", "S3Uri"), uri, "must be s3://bucket/prefix"))
				continue
			}
			c.tell(Todo, here, "", "mount what the channel has at %s of every pod, from a PersistentVolumeClaim", folder)
			continue
		}
		c.connect(here, parts[1])
		ways := "have each node fetch s3://" + parts[1] + "/" + parts[2] + " to " + folder + " before the program starts, or read it in place"
		if kind, _ := look(channel, "DataSource", "S3DataSource")["S3DataDistributionType"].(string); kind == "ShardedByS3Key" {
			ways += "; SageMaker gave each host a part of it (ShardedByS3Key): let each rank take its own part"
		}
		c.tell(Todo, here, "", ways)
	}
}

// connect names the data connection for a bucket. A job has one with the usual variables.
func (c *fromSageMaker) connect(at, bucket string) {
	name := cmp.Or(c.options.Connection, bucket)
	switch {
	case !c.hasConnection:
		c.connection, c.hasConnection = name, true
		c.tell(Changed, at, connections, "the data connection %s brings AWS_S3_BUCKET, AWS_S3_ENDPOINT and the keys to every rank, in place of the job's role: make that Secret for the bucket %s", name, bucket)
	case c.connection != name:
		c.tell(Todo, at, c.where(envField, launcherPod+firstOf+".env and Worker"), "the bucket %s is another one, and a rank has one AWS_S3_BUCKET: give the job its keys under other names (valueFrom: secretKeyRef)", bucket)
	}
}

// outputs go nowhere by themselves.
func (c *fromSageMaker) outputs() {
	c.take("OutputDataConfig", "KmsKeyId")
	c.take("OutputDataConfig", "CompressionType")
	if uri, _ := c.text("OutputDataConfig", "S3OutputPath"); uri != "" {
		c.tell(Todo, "OutputDataConfig.S3OutputPath", "", "nothing uploads %s to %s: let rank 0 do that at its end, or write to a PersistentVolumeClaim", modelFolder, uri)
	}
	if uri, _ := c.text("CheckpointConfig", "S3Uri"); uri != "" {
		c.tell(Todo, "CheckpointConfig.S3Uri", "", "nothing copies checkpoints to %s: let the program write them there, or to a PersistentVolumeClaim that all nodes mount", uri)
	}
	if folder, _ := c.text("CheckpointConfig", "LocalPath"); folder != "" && !strings.HasPrefix(folder, workFolder) {
		c.tell(Todo, "CheckpointConfig.LocalPath", "", "%s must be a folder that the program may write to", folder)
	}
}

// limits are how long the job may run, and who it is.
func (c *fromSageMaker) limits() {
	if seconds, found := c.number("StoppingCondition", "MaxRuntimeInSeconds"); found && seconds > 0 {
		if c.options.Overrides && !c.asMPIJob {
			c.tell(Lost, "StoppingCondition.MaxRuntimeInSeconds", "", "TrainJobs have it from Trainer v2.2 on")
		} else {
			c.deadline = seconds
			c.moved("StoppingCondition.MaxRuntimeInSeconds", c.where("spec.activeDeadlineSeconds", "spec.runPolicy.activeDeadlineSeconds"))
		}
	}
	const quiet = ""
	for _, gone := range []struct{ name, text string }{
		{"RoleArn", "the data connection brings credentials; what else the role allowed, a service account has to"},
		{"VpcConfig", "pods are in the cluster's network, and a NetworkPolicy keeps jobs apart"},
		{"EnableNetworkIsolation", "a NetworkPolicy lets pods reach each other, DNS and HTTPS alone"},
		{"EnableInterContainerTrafficEncryption", "ranks' own connections are not encrypted; those that start them are"},
		{"EnableManagedSpotTraining", "name nodes that may go away by nodeSelector and tolerations, and write checkpoints"},
		{"RetryStrategy", "a job is tried as often as its runtime or its backoffLimit says"},
		{"Tags", "write labels for what matters"},
		{"StoppingCondition", "waiting for machines has no limit here but that of a queue"},
		{"DebugHookConfig", quiet},
		{"DebugRuleConfigurations", quiet},
		{"ProfilerConfig", quiet},
		{"ProfilerRuleConfigurations", quiet},
		{"TensorBoardOutputConfig", quiet},
		{"ExperimentConfig", quiet},
		{"ModelPackageConfig", quiet},
		{"InfraCheckConfig", quiet},
		{"RemoteDebugConfig", quiet},
	} {
		value, found := c.take(gone.name)
		if !found || value == false || len(leaves(value, "x")) == 0 {
			continue
		}
		c.tell(Lost, gone.name, "", cmp.Or(gone.text, "it is a service of SageMaker's"))
	}
}

func (c *fromSageMaker) metadata() tree {
	metadata := tree{"name": c.name}
	if c.hasConnection {
		metadata["annotations"] = tree{mpi.AnnotationConnections: c.connection}
	}
	return metadata
}

func workVolumes() []any { return []any{tree{"name": workVolume, "emptyDir": tree{}}} }
func workMounts() []any  { return []any{tree{"name": workVolume, "mountPath": workFolder}} }

func (c *fromSageMaker) trainJob() tree {
	ref := c.options.Runtime
	ref.Name = cmp.Or(ref.Name, runtimes[mpi.OpenMPI])
	runtimeRef := tree{"name": ref.Name}
	set(runtimeRef, "kind", ref.Kind)
	trainer := tree{"image": c.image, "command": anys(c.command), "numNodes": c.nodes, "numProcPerNode": c.slots, "resourcesPerNode": c.resources, "env": anys(c.env)}
	spec := tree{"runtimeRef": runtimeRef, "trainer": trainer}
	if c.deadline > 0 {
		spec["activeDeadlineSeconds"] = c.deadline
	}
	pod := tree{"volumes": workVolumes(), "containers": []any{tree{"name": trainjob.Container, "volumeMounts": workMounts()}}}
	if c.options.Overrides {
		spec["podTemplateOverrides"] = []any{tree{"targetJobs": []any{tree{"name": "launcher"}, tree{"name": trainjob.Container}}, "spec": pod}}
	} else {
		var jobs []any
		for _, name := range []string{"launcher", trainjob.Container} {
			jobs = append(jobs, tree{"name": name, "template": tree{"spec": tree{"template": tree{"spec": clone(pod)}}}})
		}
		spec["runtimePatches"] = []any{tree{"manager": patchManager, "trainingRuntimeSpec": tree{"template": tree{"spec": tree{"replicatedJobs": jobs}}}}}
	}
	return tree{"apiVersion": trainjob.GroupVersion.String(), "kind": trainjob.Kind, "metadata": c.metadata(), "spec": spec}
}

func (c *fromSageMaker) mpiJob() tree {
	template := func(command []string) tree {
		main := tree{"name": "main", "image": c.image, "resources": clone(c.resources), "env": clone(anys(c.env)), "volumeMounts": workMounts()}
		if len(command) > 0 {
			main["command"] = anys(command)
		}
		return tree{"spec": tree{"containers": []any{main}, "volumes": workVolumes()}}
	}
	specs := tree{"Launcher": tree{"template": template(c.command)}}
	if c.nodes > 1 {
		specs["Worker"] = tree{"replicas": c.nodes - 1, "template": template(nil)}
	}
	spec := tree{"slotsPerWorker": c.slots, "runLauncherAsWorker": true, "mpiReplicaSpecs": specs}
	if c.deadline > 0 {
		spec["runPolicy"] = tree{"activeDeadlineSeconds": c.deadline}
	}
	return tree{"apiVersion": kubeflow.SchemeGroupVersion.String(), "kind": kubeflow.Kind, "metadata": c.metadata(), "spec": spec}
}
