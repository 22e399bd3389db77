package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	kubeflow "github.com/kubeflow/mpi-operator/pkg/apis/kubeflow/v2beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/doctor"
)

// A new operator needs seconds for its certificate, and the API server for the webhooks' configurations.
const (
	checkTimeout  = 90 * time.Second
	checkInterval = 2 * time.Second
)

// checkInstallation checks the operator of a namespace until all checks pass or the time is over, prints the last results, and
// fails if one of them failed.
func checkInstallation(namespace string) error {
	if namespace == "" {
		return errors.New("--namespace or $POD_NAMESPACE must name the operator's namespace")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("find the API server: %w", err)
	}
	config.WarningHandler = rest.NoWarnings{} // they are about the jobs of dry runs
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), kubeflow.AddToScheme(scheme)); err != nil {
		return err
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the API server: %w", err)
	}
	ctx, stop := context.WithTimeout(ctrl.SetupSignalHandler(), checkTimeout)
	defer stop()
	for {
		cluster := doctor.Cluster{API: api, Discovery: served, Namespace: namespace, Now: time.Now()}
		results, err := cluster.CheckInstallation(ctx)
		if err == nil && !slices.ContainsFunc(results, isFailed) {
			return printResults(os.Stdout, results)
		}
		select {
		case <-time.After(checkInterval):
		case <-ctx.Done():
			return errors.Join(err, printResults(os.Stdout, results))
		}
	}
}

func isFailed(r doctor.Result) bool { return r.Verdict == doctor.Fail }

// printResults prints a line for each check, and fails if one of them failed.
func printResults(to io.Writer, results []doctor.Result) error {
	var failed []string
	for _, r := range results {
		line := fmt.Sprintf("%-5s %-16s %s", r.Verdict, r.Check, r.Found)
		if r.Remedy != "" {
			line += "\n" + strings.Repeat(" ", 23) + "> " + r.Remedy
		}
		if _, err := fmt.Fprintln(to, line); err != nil {
			return err
		}
		if isFailed(r) {
			failed = append(failed, r.Check)
		}
	}
	if len(failed) > 0 {
		return fmt.Errorf("%d of %d checks failed: %s", len(failed), len(results), strings.Join(failed, ", "))
	}
	return nil
}
