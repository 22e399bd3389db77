package hostile

import (
	"fmt"
	"strings"

	"opendatahub.io/mpijob/internal/mpi"
)

// corpus returns jobs that were once handled wrongly: they got stuck, failed without a cause or with a wrong one, lost their
// isolation, or had fields without effect.
func corpus() []Case {
	var all []Case
	name := func() string { return fmt.Sprintf("hostile-%d", len(all)) }
	const program = "[mpirun, -n, '1', sleep, '5']"
	// Annotations of a job that runs.
	for _, annotation := range []string{mpi.AnnotationRDMA, mpi.AnnotationSilence, mpi.AnnotationProfile, mpi.AnnotationRequeues, mpi.AnnotationRequiredTopology, mpi.AnnotationWaitForQuota} {
		c := mpiJob(name(), program, 1)
		c.Later = map[string]string{annotation: "x y"}
		all = append(all, c)
	}
	mpiJobWith := func(at string, value any) {
		c := mpiJob(name(), program, 1)
		c.apply(at, value)
		all = append(all, c)
	}
	trainJobWith := func(at string, value any) {
		c := trainJob(name(), "[mpirun, -n, '1', 'true']")
		c.apply(at, value)
		all = append(all, c)
	}
	// A pod that its job's NetworkPolicy does not select.
	trainJobWith("launcher metadata labels "+mpi.LabelJobSet, "other")
	mpiJobWith("launcher metadata labels "+mpi.LabelJob, "other")
	// Wrong causes.
	mpiJobWith("worker spec securityContext", object("{sysctls: [{name: kernel.msgmax, value: '1'}]}"))
	mpiJobWith("worker spec securityContext", object("{appArmorProfile: {type: Localhost, localhostProfile: no-such-profile}}"))
	mpiJobWith("worker spec activeDeadlineSeconds", int64(1))
	// No causes.
	trainJobWith("spec trainer resourcesPerNode", object("{requests: {cpu: -1}}"))
	trainJobWith("spec trainer resourcesPerNode", object("{requests: {cpu: 2}, limits: {cpu: 1}}"))
	trainJobWith("pod spec volumes", object("[{name: mpi-agent, emptyDir: {}}]"))
	mpiJobWith("launcher spec hostPID", true)
	mpiJobWith("pod spec resourceClaims", object("[{name: c, resourceClaimName: no-such-claim}]"))
	trainJobWith("pod spec resourceClaims", object("[{name: c, resourceClaimTemplateName: no-such-template}]"))
	// Annotations of another kind of job or of a runtime.
	for _, annotation := range [][2]string{
		{mpi.AnnotationMaxRestarts, "-1"}, {mpi.AnnotationTTL, "60"}, {mpi.AnnotationGate, mpi.GateOpen}, {mpi.AnnotationMaxWorkers, "1"}, {mpi.AnnotationAllowEgress, "0.0.0.0/0"}, {mpi.AnnotationImplementation, "OpenMPI"},
	} {
		mpiJobWith("metadata annotations "+annotation[0], annotation[1])
	}
	for _, annotation := range [][2]string{
		{mpi.AnnotationLaunch, mpi.LaunchAgent}, {mpi.AnnotationGate, mpi.GateOpen}, {mpi.AnnotationImplementation, "MPICH"}, {mpi.AnnotationMaxWorkers, "1"}, {mpi.AnnotationAllowEgress, "0.0.0.0/0"},
	} {
		trainJobWith("metadata annotations "+annotation[0], annotation[1])
	}
	// Misleading causes.
	mpiJobWith("worker spec containers 0 livenessProbe", object("{exec: {command: ['false']}, periodSeconds: 1, failureThreshold: 1}"))
	mpiJobWith("worker spec hostUsers", false)
	mpiJobWith("worker spec initContainers", object(fmt.Sprintf("["+strings.Replace(container, "main", "listener", 1)+"]", ", restartPolicy: Always, command: [python3, -m, http.server, '2222']")))
	mpiJobWith("launcher spec containers 0 command", object(`["a\0b"]`))
	// A file without an end, which the agent read into memory until the node had none left.
	mpiJobWith("pod spec containers 0 env", object("[{name: MPI_AGENT_KEY, value: /dev/zero}]"))
	trainJobWith("spec trainer env", object("[{name: MPI_AGENT_KEY, value: /dev/zero}]"))
	// Numbers and names.
	trainJobWith("spec trainer numProcPerNode", int64(0))
	trainJobWith("spec trainer numProcPerNode", int64(-1))
	trainJobWith("spec trainer numNodes", int64(2147483647))
	mpiJobWith("worker spec hostname", strings.Repeat("h", 64))
	return all
}
