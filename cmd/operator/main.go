// The operator runs MPIJobs.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"opendatahub.io/mpijob/internal/operator"
	"opendatahub.io/mpijob/internal/program"
	"opendatahub.io/mpijob/internal/tracing"
)

func main() {
	var options operator.Options
	var namespaces, usageLabels string
	flag.StringVar(&options.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "Namespace of the operator, for its lease and webhook certificate (default $POD_NAMESPACE)")
	flag.StringVar(&namespaces, "watch-namespaces", "", "Only run jobs in these namespaces, separated by commas (default all)")
	flag.StringVar(&options.ClusterDomain, "cluster-domain", "", "Domain of host names in hostfiles, such as cluster.local (default none: names end in .svc)")
	flag.StringVar(&options.AgentImage, "agent-image", os.Getenv("AGENT_IMAGE"), "Image of the agent that starts ranks in pods; empty: the sshd of the jobs' images starts them (default $AGENT_IMAGE)")
	flag.StringVar((*string)(&options.AgentDelivery), "agent-delivery", "auto", "How the agent gets into pods: image-volume (mounts its image; the fastest), init-container (copies it), or auto (image-volume where API server, kubelets and container runtimes support it)")
	flag.BoolVar(&options.NetworkPolicies, "network-policies", true, "Create a NetworkPolicy for every job. If false, existing ones are deleted")
	flag.BoolVar(&options.IsolateAllTrainJobs, "isolate-all-trainjobs", false, "Create a NetworkPolicy for TrainJobs of frameworks other than MPI, too")
	flag.BoolVar(&options.RequireEncryption, "require-encryption", false, "Refuse jobs of more than one pod unless the cluster's network encrypts the traffic between pods (docs/security.md)")
	flag.StringVar(&options.AllowEgress, "allow-egress", "", "Destinations that pods of all jobs may connect to besides DNS and HTTPS, such as 10.0.0.7:2049,namespace/minio:9000 (docs/isolation.md)")
	flag.StringVar(&options.GangScheduling, "gang-scheduling", "auto", "Gang scheduler: podgroup (kube-scheduler of Kubernetes 1.37 or later), volcano, embedded (the operator), none, or the name of a scheduler with coscheduling; auto uses podgroup if the cluster has it, else embedded; requested is auto, but uses embedded only for jobs with a schedulingPolicy (docs/gangs.md)")
	flag.StringVar((*string)(&options.KeyType), "ssh-key-type", "p521", "Type of the SSH keys of jobs: p521 (ECDSA) or rsa-4096; agents use keys derived from a p521 key, or the rsa-4096 key itself. Kubeflow Trainer makes p521 keys for TrainJobs; with rsa-4096, those of the operator take their place")
	flag.BoolVar(&options.LeaderElection, "leader-elect", true, "Elect a leader, so that only one of several replicas runs jobs")
	flag.StringVar(&options.Autoscaler, "autoscaler", "auto", "Whether a cluster autoscaler may add nodes for waiting jobs: present, none, or auto, which looks for Cluster Autoscaler and Karpenter")
	flag.StringVar(&options.HealthAddress, "health-address", ":8081", "Address to serve /healthz and /readyz on; 0 disables them")
	flag.StringVar(&options.MetricsAddress, "metrics-address", ":8443", "Address to serve /metrics on over TLS; 0 disables it")
	flag.DurationVar(&options.ReportRetention, "report-retention", 30*24*time.Hour, "Duration to keep the report of a finished job, at least 24h for failed jobs; 0 keeps reports forever")
	flag.IntVar(&options.ReportLimits.Reports, "max-reports", 1000, "Number of reports of finished jobs to keep in each namespace, the oldest are deleted first and those of failed jobs last; 0 is no limit")
	flag.IntVar(&options.ReportLimits.Bytes, "max-report-bytes", 16<<20, "Size in bytes of the reports of finished jobs to keep in each namespace; 0 is no limit")
	flag.IntVar(&options.ReportLimits.TotalBytes, "max-total-report-bytes", 100<<20, "Size in bytes of the reports of finished jobs to keep in all namespaces, those of the namespaces with the most reports are deleted first; 0 is no limit")
	flag.StringVar(&usageLabels, "usage-labels", "team,project,cost-center", "Keys of the labels of jobs to keep in the sums of deleted reports, separated by commas, 5 at most (docs/cli.md); empty keeps none")
	flag.IntVar(&options.MaxLogBytes, "max-log-bytes", 128<<10, "Size in bytes of the compressed logs of its pods to keep in the report of each finished job, the first lines are left out; 0 keeps none, 524288 is the highest value")
	bucket := &options.LogBucket
	flag.StringVar(&bucket.Bucket, "log-bucket", "", "Name of an S3 bucket to keep the complete logs of finished jobs in; empty: only the ends of logs are kept, in reports (docs/admin/logs.md)")
	flag.StringVar(&bucket.Prefix, "log-bucket-prefix", "mpijob-logs/", "Prefix of the objects in the log bucket, all of which belong to this operator: it deletes old ones")
	flag.StringVar(&bucket.Endpoint, "log-bucket-endpoint", "", "URL of the S3 server of the log bucket (default that of AWS in the region)")
	flag.StringVar(&bucket.PublicEndpoint, "log-bucket-public-endpoint", "", "URL by which users reach the S3 server of the log bucket (default that of --log-bucket-endpoint)")
	flag.StringVar(&bucket.Region, "log-bucket-region", "us-east-1", "Region of the log bucket")
	flag.StringVar(&bucket.Credentials, "log-bucket-credentials", "/etc/mpijob/log-bucket", "Folder with the files AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and ca.crt if the S3 server has a CA of its own")
	flag.DurationVar(&bucket.Retention, "log-bucket-retention", 24*time.Hour, "Duration to keep the complete logs of a job after its end, 168h at most")
	flag.Int64Var(&bucket.MaxBytes, "log-bucket-job-bytes", 1<<30, "Size in bytes of the text of its logs to keep of each job in the log bucket, 4294967296 at most, and three quarters of that of each pod; what is printed after that is left out")
	flag.StringVar(&options.JobLinks, "job-links", "", "Links of all jobs to pages about them, as TITLE=URL separated by blanks, such as TensorBoard=https://tensorboard.example.com/{name}; the placeholders are those of --logs-link (docs/metrics.md)")
	flag.StringVar(&options.LogsLink, "logs-link", "", "URL of a job's logs in a log store, with {namespace}, {kind}, {name}, {uid}, {start}, {end}, {startMs} and {endMs}; reports contain it (docs/admin/logs.md)")
	flag.Func("mask", "Regular expression (RE2) of secrets to mask in the logs and events of reports; only its first group is masked if it has one. Can be repeated. Common forms of secrets are always masked", func(pattern string) error {
		options.MaskPatterns = append(options.MaskPatterns, pattern)
		return nil
	})
	flag.DurationVar(&options.TrainingProgress, "training-progress", 30*time.Second, "Interval at which the launcher's log of a running job is read for progress (epoch, step, loss, accuracy), longer for jobs that print none; 0 disables it")
	flag.IntVar(&options.WebhookPort, "webhook-port", 9443, "Port of the admission webhooks; 0 disables them")
	flag.StringVar(&options.TLSMinVersion, "tls-min-version", "VersionTLS12", "Lowest version of TLS to serve webhooks and metrics with: VersionTLS12 or VersionTLS13")
	flag.Func("tls-cipher-suites", "Cipher suites to serve webhooks and metrics with, by their names in Go, separated by commas; those of TLS 1.3 are not configurable (default those of Go)", func(names string) error {
		options.TLSCipherSuites = strings.Split(names, ",")
		return nil
	})
	check := flag.Bool("check-installation", false, "Check whether the operator that is installed in --namespace works, print the results, and exit; helm test does this")
	program.Main("operator", func(slog.Handler) error {
		if *check {
			return checkInstallation(options.Namespace)
		}
		if usageLabels != "" {
			options.UsageLabels = strings.Split(usageLabels, ",")
		}
		return run(options, namespaces)
	})
}

func run(options operator.Options, namespaces string) error {
	if namespaces != "" {
		options.WatchNamespaces = strings.Split(namespaces, ",")
	}
	if options.Namespace == "" && (options.LeaderElection || options.WebhookPort != 0) {
		return fmt.Errorf("--namespace or $POD_NAMESPACE must name the operator's own namespace, unless both --leader-elect=false and --webhook-port=0 are given")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	ctx := ctrl.SetupSignalHandler()
	if options.Tracing, err = tracing.FromEnvironment(ctx); err != nil {
		return err
	}
	defer options.Tracing.Close()
	return operator.Run(ctx, config, options)
}
