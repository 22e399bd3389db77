// The operator runs MPIJobs.
package main

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"opendatahub.io/mpijob/internal/operator"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", err)
		os.Exit(1)
	}
}

func run() error {
	var options operator.Options
	var namespaces string
	var level slog.Level
	flag.StringVar(&options.Namespace, "namespace", os.Getenv("POD_NAMESPACE"), "the operator's own namespace, for its lease and its webhook's certificate; by default $POD_NAMESPACE")
	flag.StringVar(&namespaces, "watch-namespaces", "", "run jobs in these namespaces only, separated by commas; by default in all")
	flag.StringVar(&options.ClusterDomain, "cluster-domain", "", "end host names in hostfiles with this domain, such as cluster.local; by default they end in .svc")
	flag.StringVar(&options.AgentImage, "agent-image", os.Getenv("AGENT_IMAGE"), "the image that brings the agent into pods, which starts their ranks; by default $AGENT_IMAGE; empty: ranks are started by the images' own sshd")
	flag.BoolVar(&options.NetworkPolicies, "network-policies", true, "isolate every job by a NetworkPolicy; without it those of before are removed")
	flag.StringVar(&options.AllowEgress, "allow-egress", "", "let the pods of all jobs connect to these places besides DNS and HTTPS, such as 10.0.0.7:2049,namespace/minio:9000 (docs/isolation.md)")
	flag.StringVar(&options.GangScheduling, "gang-scheduling", "auto", "what places all pods of a job or none (docs/gangs.md): podgroup (Kubernetes' own scheduler, from 1.37 on), volcano, embedded (the operator itself), none, or the name of a scheduler with coscheduling; auto: podgroup where the cluster has it, else embedded for the jobs that ask for it")
	flag.StringVar((*string)(&options.KeyType), "ssh-key-type", "p521", "the type of jobs' SSH keys: p521 (ECDSA) or rsa-4096")
	flag.BoolVar(&options.LeaderElection, "leader-elect", true, "let one of several replicas work at a time")
	flag.StringVar(&options.HealthAddress, "health-address", ":8081", "serve /healthz and /readyz here; 0 turns them off")
	flag.StringVar(&options.MetricsAddress, "metrics-address", ":8443", "serve /metrics over TLS here; 0 turns it off")
	flag.DurationVar(&options.ReportRetention, "report-retention", 30*24*time.Hour, "keep a job's report so long after the job's end, those of failed jobs for 24h at least; 0 keeps them for ever")
	flag.Func("mask", "hide what this regular expression (RE2) matches, or its first group if it has one, in the logs and events that reports keep; for secrets in forms of your own, since the usual ones are hidden anyway; may be repeated", func(pattern string) error {
		options.MaskPatterns = append(options.MaskPatterns, pattern)
		return nil
	})
	flag.DurationVar(&options.TrainingProgress, "training-progress", 30*time.Second, "read the launcher's log of a running job for its progress (epoch, step, loss, accuracy) so often, a job that tells none less often; 0 turns it off")
	flag.IntVar(&options.WebhookPort, "webhook-port", 9443, "serve the admission webhooks on this port; 0 turns them off")
	flag.TextVar(&level, "log-level", slog.LevelInfo, "debug, info, warn or error")
	flag.Parse()
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; every setting is a flag, see --help", flag.Arg(0))
	}
	if namespaces != "" {
		options.WatchNamespaces = strings.Split(namespaces, ",")
	}
	if options.Namespace == "" && (options.LeaderElection || options.WebhookPort != 0) {
		return fmt.Errorf("--namespace or $POD_NAMESPACE must name the operator's own namespace, unless both --leader-elect=false and --webhook-port=0 are given")
	}
	logger := logr.FromSlogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level, ReplaceAttr: readable}))
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)

	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	return operator.Run(ctrl.SetupSignalHandler(), config, options)
}

// readable has controllers log the names of what they watch: JSON cannot hold the objects themselves.
func readable(_ []string, attr slog.Attr) slog.Attr {
	if named, is := attr.Value.Any().(fmt.Stringer); is && attr.Key == "source" {
		return slog.String(attr.Key, named.String())
	}
	return attr
}
