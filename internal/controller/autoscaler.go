package controller

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Values of the operator's flag --autoscaler.
const (
	// AutoscalerAuto detects autoscalers, AutoscalerPresent assumes one, and AutoscalerNone none.
	AutoscalerAuto    = "auto"
	AutoscalerPresent = "present"
	AutoscalerNone    = "none"
)

// CheckAutoscaler returns an error if a value of the flag --autoscaler is not allowed; empty is AutoscalerAuto.
func CheckAutoscaler(setting string) error {
	if slices.Contains([]string{"", AutoscalerAuto, AutoscalerPresent, AutoscalerNone}, setting) {
		return nil
	}
	return fmt.Errorf("--autoscaler: %q is not allowed; use %s, %s or %s", setting, AutoscalerAuto, AutoscalerPresent, AutoscalerNone)
}

// autoscalerInterval is how often an autoscaler is looked for.
const autoscalerInterval = time.Minute

// statusConfigMap is what the Cluster Autoscaler writes about itself, also that of OpenShift and of cloud providers, in one
// of statusNamespaces. The API of OpenShift's ClusterAutoscaler says nothing: every OpenShift cluster has it.
const statusConfigMap = "cluster-autoscaler-status"

var statusNamespaces = []string{"kube-system", "openshift-machine-api"}

// karpenterGroup is the API group of Karpenter.
const karpenterGroup = "karpenter.sh"

// autoscaler finds out whether the cluster has an autoscaler. It only reads, three requests a minute.
type autoscaler struct {
	setting   string
	live      client.Reader
	discovery discovery.ServerGroupsInterface
	found     atomic.Bool
}

// isPresent reports whether the cluster may get nodes for pods that cannot be scheduled.
func (a *autoscaler) isPresent() bool {
	switch a.setting {
	case AutoscalerPresent:
		return true
	case AutoscalerNone:
		return false
	}
	return a.found.Load()
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: all replicas answer webhooks.
func (*autoscaler) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (a *autoscaler) Start(ctx context.Context) error {
	if a.setting == AutoscalerPresent || a.setting == AutoscalerNone {
		return nil
	}
	ticker := time.NewTicker(autoscalerInterval)
	defer ticker.Stop()
	for {
		if found, err := a.find(ctx); err != nil {
			// The last answer holds.
			log.FromContext(ctx).Error(err, "looking for a cluster autoscaler failed")
		} else if a.found.Swap(found) != found {
			log.FromContext(ctx).Info("a cluster autoscaler came or went", "there", found)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// find looks for the status of a Cluster Autoscaler and for the API of Karpenter.
func (a *autoscaler) find(ctx context.Context) (bool, error) {
	for _, namespace := range statusNamespaces {
		var status corev1.ConfigMap
		switch err := a.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: statusConfigMap}, &status); {
		case err == nil:
			return true, nil
		case !apierrors.IsNotFound(err):
			return false, fmt.Errorf("read ConfigMap %s/%s: %w", namespace, statusConfigMap, err)
		}
	}
	groups, err := a.discovery.ServerGroups()
	if err != nil {
		return false, fmt.Errorf("list API groups: %w", err)
	}
	for _, group := range groups.Groups {
		if group.Name == karpenterGroup {
			return true, nil
		}
	}
	return false, nil
}
