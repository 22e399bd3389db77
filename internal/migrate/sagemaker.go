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

// Hyperparameters and paths of SageMaker's training toolkit (github.com/aws/sagemaker-training-toolkit, params.py, mpi.py).
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
	// share is the percentage of an instance's CPU and memory that a pod requests: the rest is for the kubelet and for pods
	// that run on every node.
	share = 90
)

// FromSageMaker converts a training job of SageMaker to a TrainJob or an MPIJob: the request of CreateTrainingJob, or the
// answer of DescribeTrainingJob. SageMaker's toolkit must run the job by MPI. The errors list all problems.
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
		if c.checkLimits(object, options.Used); len(c.errs) > 0 {
			return Result{}, c.errs
		}
	}
	return c.result(object, func(string) string { return "there is no equivalent" }), nil
}

// answered are the fields that DescribeTrainingJob adds, which do not describe the job.
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

// where returns the field of the new job: of a TrainJob, or of an MPIJob.
func (c *fromSageMaker) where(trainJob, mpiJob string) string {
	if c.asMPIJob {
		return mpiJob
	}
	return trainJob
}

func (c *fromSageMaker) imageField() string {
	return c.where(imageField, inBoth(".image"))
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
		c.fail(field.Required(field.NewPath(at), "set it, or use --name"))
		return
	case c.name != name:
		c.tell(Changed, at, "metadata.name", "renamed from %s to %s", name, c.name)
	default:
		c.moved(at, "metadata.name")
	}
	const most = validation.DNS1123LabelMaxLength - len("-launcher-0-0")
	if problems := validation.IsDNS1035Label(c.name); len(problems) > 0 || len(c.name) > most {
		c.fail(field.Invalid(field.NewPath(at), c.name, fmt.Sprintf("must have at most %d lowercase letters, digits and dashes, and start with a letter; set another name with --name", most)))
	}
}

// hyperparameters reads the hyperparameters. Their values are strings, most of which contain JSON, as the SDK writes them.
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
			"must be \"true\": only MPI jobs can be converted (distribution={\"mpi\": {\"enabled\": True}} of an estimator); set it also if the image itself starts MPI"))
	}
}

// pythons formats a JSON value as Python does, as the toolkit writes it to a command line. Other text is returned unchanged.
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
		c.fail(field.Forbidden(field.NewPath(at, "InstanceGroups"), "all nodes of a job must have the same size; set one InstanceType and InstanceCount"))
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
		c.tell(Changed, at+".InstanceCount", launcherSpec, "1 instance becomes a launcher that runs all ranks, without workers")
	case c.nodes == 1:
		c.fail(field.Invalid(count, c.nodes, "a TrainJob of an MPI runtime has at least 2 pods: use 2 instances, or convert it to an MPIJob that has only a launcher (--to v2beta1)"))
	default:
		c.tell(Moved, at+".InstanceCount", c.where(nodesField, workerSpec+".replicas (plus the launcher)"), "")
	}
	c.size()
	if volume, found := c.number(at, "VolumeSizeInGB"); found && volume > 0 {
		c.tell(Todo, at+".VolumeSizeInGB", "", "%s (%d GB) becomes an emptyDir on the disk of the node: mount a PersistentVolumeClaim there if this is too small", workFolder, volume)
	}
	c.take(at, "VolumeKmsKeyId")
}

// size sets the requests of a pod from the instance type.
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
		c.fail(field.Required(path, "set an instance type, such as ml.p4d.24xlarge"))
		return
	case !known:
		c.fail(field.Invalid(path, name, fmt.Sprintf("is not in the built-in list (families: %s): set the size of a node with --cpu, --memory and --gpu", strings.Join(knownFamilies(), ", "))))
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
			c.tell(Todo, "HyperParameters["+perHost+"]", "", "%d ranks per node with %d devices; most MPI programs for GPUs need one rank per GPU", c.slots, of.Devices)
		}
	}
	c.tell(Changed, path.String(), c.where(sizeField, inBoth(".resources")),
		"%s has %d vCPUs, %d GiB of memory%s; each pod requests %d%% of CPU and memory (cpu %d, memory %dGi), so that it fits on a node of this size", cmp.Or(name, "the instance"), of.CPUs, of.MemoryGiB, devices, share, cpus, memory)
}

func (c *fromSageMaker) addEnv(name, value string) {
	if !slices.ContainsFunc(c.env, func(have tree) bool { return have["name"] == name }) {
		c.env = append(c.env, tree{"name": name, "value": value})
	}
}

// program sets the command of the launcher, as the toolkit does.
func (c *fromSageMaker) program() {
	const at = "AlgorithmSpecification"
	c.image, _ = c.text(at, "TrainingImage")
	if c.image == "" {
		c.fail(field.Required(field.NewPath(at, "TrainingImage"), "set the image; algorithms of the SageMaker marketplace (AlgorithmName) run only in SageMaker"))
	} else {
		c.moved(at+".TrainingImage", c.imageField())
		if strings.Contains(c.image, ".dkr.ecr.") {
			c.tell(Todo, at+".TrainingImage", "", "the image is in a private registry of AWS: copy it to your registry, or link a pull secret to the service account of the pods")
		}
		c.tell(Todo, at+".TrainingImage", "", "pods run as a non-root user: check that the image supports this and contains mpirun of Open MPI; sshd and SageMaker's toolkit are not needed")
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
	c.tell(Changed, "HyperParameters", to, "hyperparameters become arguments of the program, sorted by name, as in SageMaker")
	c.variables()
}

func (c *fromSageMaker) list(path ...string) []string {
	list, _ := taken[[]any](&c.conversion, path...)
	return texts(list)
}

// customOptions returns the user's options of mpirun. One of them, --NCCL_DEBUG, is an option of the toolkit.
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
		c.tell(Todo, "HyperParameters["+mpiOptions+"]", "", "the options select a network interface: most pods have only eth0")
	}
	return kept
}

// started returns the program that mpirun starts.
func (c *fromSageMaker) started(entry []string) []string {
	if len(entry) > 0 {
		c.moved("AlgorithmSpecification.ContainerEntrypoint", c.where(commandField, launcherPod+firstOf+".command"))
		return entry
	}
	script := c.hyper[program]
	path := "HyperParameters[" + program + "]"
	if script == "" {
		c.fail(field.Required(field.NewPath("HyperParameters").Key(program), "set the program that each rank runs, such as \"train.py\", or set AlgorithmSpecification.ContainerEntrypoint"))
		return nil
	}
	source := cmp.Or(c.hyper[submitted], "the source directory")
	c.tell(Todo, path, "", "copy %s from %s to the working directory of the image, or to a volume: it is not downloaded automatically", script, source)
	if strings.HasSuffix(script, ".py") {
		c.tell(Changed, path, "", "runs with \"python -m mpi4py\", as in SageMaker, so that an exception in one rank ends all ranks; if the image has no mpi4py, remove \"-m mpi4py\"")
		return []string{"python", "-m", "mpi4py", script}
	}
	return []string{"/bin/sh", script}
}

// arguments returns the hyperparameters that are not for the toolkit as arguments.
func (c *fromSageMaker) arguments(forToolkit bool) []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(c.hyper)) {
		value := c.hyper[name]
		switch {
		case name == "_tuning_objective_metric":
		case strings.HasPrefix(name, toolkitPrefix):
			c.toolkits(name, value)
		case !forToolkit:
			c.tell(Todo, "HyperParameters["+name+"]", "", "becomes an argument; the file %s/input/config/hyperparameters.json does not exist here", workFolder)
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

// toolkits converts a hyperparameter for SageMaker's toolkit, or for one of its libraries.
func (c *fromSageMaker) toolkits(name, value string) {
	switch {
	case slices.Contains([]string{mpiEnabled, perHost, inAll, mpiOptions, program, submitted}, name):
	case slices.Contains([]string{"sagemaker_job_name", "sagemaker_region", "sagemaker_container_log_level", "sagemaker_enable_cloudwatch_metrics", "sagemaker_s3_output"}, name):
	case strings.Contains(name, "distributed") && strings.EqualFold(value, "true"), name == "sagemaker_parameter_server_enabled" && strings.EqualFold(value, "true"):
		c.tell(Lost, "HyperParameters["+name+"]", "", "this library runs only in SageMaker: use Horovod, or torch.distributed with NCCL or MPI")
	default:
		c.tell(Lost, "HyperParameters["+name+"]", "", "only SageMaker's toolkit uses this")
	}
}

// variables sets the job's own variables, and those that the toolkit sets for programs.
func (c *fromSageMaker) variables() {
	own, _ := taken[tree](&c.conversion, "Environment")
	for _, name := range slices.Sorted(maps.Keys(own)) {
		c.addEnv(name, fmt.Sprint(own[name]))
	}
	if len(own) > 0 {
		c.moved("Environment", c.where(envField, inBoth(".env")))
	}
	c.addEnv("SM_MODEL_DIR", modelFolder)
	c.addEnv("SM_OUTPUT_DATA_DIR", workFolder+"/output/data")
	c.tell(Todo, "", c.where(envField, inBoth(".env")), "SM_MODEL_DIR, SM_OUTPUT_DATA_DIR, SM_NUM_GPUS and SM_CHANNEL_<name> are set as in SageMaker: if the program reads others, such as SM_HOSTS or SM_CURRENT_HOST, replace them with MPI calls")
}

var bucketURI = regexp.MustCompile(`^s3://([^/]+)/?(.*)$`)

// inputs converts the channels: a data connection provides the credentials; the user has to provide the data.
func (c *fromSageMaker) inputs() {
	channels, _ := taken[[]any](&c.conversion, "InputDataConfig")
	for i, channel := range entries(channels) {
		name, _ := channel["ChannelName"].(string)
		here := fmt.Sprintf("InputDataConfig[%s]", cmp.Or(name, strconv.Itoa(i)))
		folder := workFolder + "/input/data/" + name
		if name == "" {
			c.fail(field.Required(field.NewPath("InputDataConfig").Index(i).Child("ChannelName"), "set the name of the channel"))
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
			c.tell(Todo, here, "", "mount the data of the channel at %s in all pods, from a PersistentVolumeClaim", folder)
			continue
		}
		c.connect(here, parts[1])
		text := "download s3://" + parts[1] + "/" + parts[2] + " to " + folder + " on each node before the program starts, or read it from S3"
		if kind, _ := look(channel, "DataSource", "S3DataSource")["S3DataDistributionType"].(string); kind == "ShardedByS3Key" {
			text += "; SageMaker gave each host a part of the data (ShardedByS3Key): select the part of each rank in the program"
		}
		c.tell(Todo, here, "", text)
	}
}

// connect sets the data connection for a bucket. Only one data connection of a job can set the usual variables.
func (c *fromSageMaker) connect(at, bucket string) {
	name := cmp.Or(c.options.Connection, bucket)
	switch {
	case !c.hasConnection:
		c.connection, c.hasConnection = name, true
		c.tell(Changed, at, connections, "the data connection %s sets AWS_S3_BUCKET, AWS_S3_ENDPOINT and the credentials of each rank, instead of the job's role; create this Secret for the bucket %s", name, bucket)
	case c.connection != name:
		c.tell(Todo, at, c.where(envField, inBoth(".env")), "AWS_S3_BUCKET names another bucket: add the credentials for the bucket %s as other variables (valueFrom: secretKeyRef)", bucket)
	}
}

// outputs reports that outputs and checkpoints are not uploaded.
func (c *fromSageMaker) outputs() {
	c.take("OutputDataConfig", "KmsKeyId")
	c.take("OutputDataConfig", "CompressionType")
	if uri, _ := c.text("OutputDataConfig", "S3OutputPath"); uri != "" {
		c.tell(Todo, "OutputDataConfig.S3OutputPath", "", "%s is not uploaded to %s automatically: upload it from rank 0 at the end, or write to a PersistentVolumeClaim", modelFolder, uri)
	}
	if uri, _ := c.text("CheckpointConfig", "S3Uri"); uri != "" {
		c.tell(Todo, "CheckpointConfig.S3Uri", "", "checkpoints are not copied to %s automatically: write them there from the program, or to a PersistentVolumeClaim that all nodes mount", uri)
	}
	if folder, _ := c.text("CheckpointConfig", "LocalPath"); folder != "" && !strings.HasPrefix(folder, workFolder) {
		c.tell(Todo, "CheckpointConfig.LocalPath", "", "check that the program can write to %s; mount a volume there if it cannot", folder)
	}
}

// limits converts the limits of the run time, and reports services that only SageMaker has.
func (c *fromSageMaker) limits() {
	if seconds, found := c.number("StoppingCondition", "MaxRuntimeInSeconds"); found && seconds > 0 {
		if c.options.Overrides && !c.asMPIJob {
			c.tell(Lost, "StoppingCondition.MaxRuntimeInSeconds", "", "requires Trainer v2.2 or later")
		} else {
			c.deadline = seconds
			c.moved("StoppingCondition.MaxRuntimeInSeconds", c.where("spec.activeDeadlineSeconds", "spec.runPolicy.activeDeadlineSeconds"))
		}
	}
	const quiet = ""
	for _, gone := range []struct{ name, text string }{
		{"RoleArn", "the data connection provides credentials for S3; grant other rights of the role to the service account of the pods"},
		{"VpcConfig", "pods use the network of the cluster; a NetworkPolicy isolates jobs from each other"},
		{"EnableNetworkIsolation", "a NetworkPolicy restricts pods to each other, DNS and HTTPS"},
		{"EnableInterContainerTrafficEncryption", "connections between ranks are not encrypted; those that start ranks are"},
		{"EnableManagedSpotTraining", "select spot nodes with nodeSelector and tolerations, and write checkpoints"},
		{"RetryStrategy", "set the annotation mpi.opendatahub.io/max-restarts of a TrainJob, or the backoffLimit of an MPIJob"},
		{"Tags", "use labels"},
		{"StoppingCondition", "the time that a job waits for nodes is not limited"},
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
		c.tell(Lost, gone.name, "", cmp.Or(gone.text, "only SageMaker has this service"))
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
		spec["runtimePatches"] = trainjob.RuntimePatches(patchManager, []trainjob.JobPatch{
			{Job: "launcher", Template: tree{"spec": clone(pod)}}, {Job: trainjob.Container, Template: tree{"spec": clone(pod)}},
		})
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
