package cluster

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
)

// readClaims reads the PersistentVolumeClaims that the job's pods use.
func (g *Gatherer) readClaims(ctx context.Context, job mpi.Job, seen jobstate.Observed) []jobstate.Claim {
	const most = 16
	names := claimNames(job.PodSpecs()...)
	if job.External {
		// A TrainJob can patch the pods of its runtime. Pods in the cache lack their volumes.
		for _, pod := range firstPending(seen) {
			var whole corev1.Pod
			if g.live.Get(ctx, client.ObjectKeyFromObject(pod), &whole) == nil {
				names = append(names, claimNames(whole.Spec)...)
			}
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	var claims []jobstate.Claim
	for _, name := range names[:min(len(names), most)] {
		var claim corev1.PersistentVolumeClaim
		switch err := g.live.Get(ctx, client.ObjectKey{Namespace: job.Namespace, Name: name}, &claim); {
		case apierrors.IsNotFound(err):
			claims = append(claims, jobstate.Claim{Name: name, Missing: true})
		case err == nil:
			found := jobstate.Claim{Name: name, Phase: claim.Status.Phase, AccessModes: claim.Spec.AccessModes}
			if claim.Spec.StorageClassName != nil {
				found.Class = *claim.Spec.StorageClassName
			}
			found.Volume, found.Static = claim.Spec.VolumeName, claim.Spec.StorageClassName != nil && found.Class == ""
			if claim.Status.Phase != corev1.ClaimBound {
				found.Problem = g.claimProblem(ctx, &claim)
			}
			claims = append(claims, found)
		}
	}
	return claims
}

// claimNames returns the names of the claims that pods use.
func claimNames(pods ...corev1.PodSpec) (names []string) {
	for _, pod := range pods {
		for _, volume := range pod.Volumes {
			if volume.PersistentVolumeClaim != nil {
				names = append(names, volume.PersistentVolumeClaim.ClaimName)
			}
		}
	}
	return names
}

// firstPending returns the first pending pod of each role.
func firstPending(seen jobstate.Observed) (pods []*corev1.Pod) {
	isPending := func(pod *corev1.Pod) bool { return pod.Status.Phase == corev1.PodPending }
	if i := slices.IndexFunc(seen.LauncherPods, isPending); i >= 0 {
		pods = append(pods, seen.LauncherPods[i])
	}
	if i := slices.IndexFunc(seen.Workers, func(worker jobstate.Worker) bool { return isPending(worker.Pod) }); i >= 0 {
		pods = append(pods, seen.Workers[i].Pod)
	}
	for _, pod := range seen.Initializers {
		if isPending(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// claimProblem returns the message of the latest warning event about a claim; "" if there is none.
func (g *Gatherer) claimProblem(ctx context.Context, claim *corev1.PersistentVolumeClaim) string {
	var last jobstate.Event
	about := client.MatchingFields{"involvedObject.kind": "PersistentVolumeClaim", "involvedObject.name": claim.Name}
	g.eachEvent(ctx, claim.Namespace, about, func(e *corev1.Event) {
		if found := g.event(e); e.InvolvedObject.UID == claim.UID && found.Warning && !found.Last.Before(last.Last) {
			last = found
		}
	})
	return last.Message
}
