package plan_test

import (
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/plan"
)

// place is a pod, or with no namespace some address that is no pod's.
type place struct {
	namespace string
	labels    map[string]string
	address   string
}

// policies judge who reaches whom as the API's documentation has it (k8s.io/api/networking/v1). Ranges of addresses
// take in pods, as with some networks they do.
type policies []*networkingv1.NetworkPolicy

// let reports whether a connection is let through at both ends.
func (all policies) let(t *testing.T, from, to place, protocol corev1.Protocol, port int32) bool {
	t.Helper()
	return all.oneWay(t, networkingv1.PolicyTypeEgress, from, to, protocol, port) && all.oneWay(t, networkingv1.PolicyTypeIngress, to, from, protocol, port)
}

// oneWay judges by the policies of one end, which is where they are enforced.
func (all policies) oneWay(t *testing.T, way networkingv1.PolicyType, own, other place, protocol corev1.Protocol, port int32) bool {
	t.Helper()
	free := true
	for _, policy := range all {
		if own.namespace == "" || policy.Namespace != own.namespace || !slices.Contains(policy.Spec.PolicyTypes, way) || !selects(t, &policy.Spec.PodSelector, own.labels) {
			continue
		}
		free = false
		for _, rule := range rules(policy, way) {
			toPort := len(rule.Ports) == 0 || slices.ContainsFunc(rule.Ports, func(p networkingv1.NetworkPolicyPort) bool { return takes(p, protocol, port) })
			toPlace := len(rule.To) == 0 || slices.ContainsFunc(rule.To, func(p networkingv1.NetworkPolicyPeer) bool { return covers(t, policy.Namespace, p, other) })
			if toPort && toPlace {
				return true
			}
		}
	}
	return free
}

// rules are a policy's for one way, all written as those for the way out.
func rules(policy *networkingv1.NetworkPolicy, way networkingv1.PolicyType) []networkingv1.NetworkPolicyEgressRule {
	if way == networkingv1.PolicyTypeEgress {
		return policy.Spec.Egress
	}
	var same []networkingv1.NetworkPolicyEgressRule
	for _, rule := range policy.Spec.Ingress {
		same = append(same, networkingv1.NetworkPolicyEgressRule{To: rule.From, Ports: rule.Ports})
	}
	return same
}

func takes(p networkingv1.NetworkPolicyPort, protocol corev1.Protocol, port int32) bool {
	first := p.Port.IntVal
	return ptr.Deref(p.Protocol, corev1.ProtocolTCP) == protocol && first <= port && port <= ptr.Deref(p.EndPort, first)
}

func covers(t *testing.T, home string, peer networkingv1.NetworkPolicyPeer, other place) bool {
	t.Helper()
	if peer.IPBlock != nil {
		address := netip.MustParseAddr(other.address)
		in := func(cidr string) bool { return netip.MustParsePrefix(cidr).Contains(address) }
		return in(peer.IPBlock.CIDR) && !slices.ContainsFunc(peer.IPBlock.Except, in)
	}
	switch {
	case other.namespace == "":
		return false
	case peer.NamespaceSelector == nil && other.namespace != home:
		return false
	case peer.NamespaceSelector != nil && !selects(t, peer.NamespaceSelector, map[string]string{"kubernetes.io/metadata.name": other.namespace}):
		return false
	}
	return peer.PodSelector == nil || selects(t, peer.PodSelector, other.labels)
}

func selects(t *testing.T, by *metav1.LabelSelector, have map[string]string) bool {
	t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(by)
	if err != nil {
		t.Fatal(err)
	}
	return selector.Matches(labels.Set(have))
}

// isolationOf is the NetworkPolicy that is planned for a job of which nothing exists; nil where there is none.
func isolationOf(job mpi.Job, seen jobstate.Observed, settings plan.Settings) *networkingv1.NetworkPolicy {
	for _, object := range plan.For(job, seen, jobstate.Judge(job, seen), settings).Base {
		if policy, is := object.(*networkingv1.NetworkPolicy); is {
			return policy
		}
	}
	return nil
}

// trainJob is a TrainJob of the name of another job, with our runtime, which allows port 8080.
func trainJob(t *testing.T, like mpi.Job) mpi.Job {
	t.Helper()
	data, err := os.ReadFile("../../config/runtimes/base/runtime.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var used trainjob.Runtime
	if err := yaml.Unmarshal(data, &used); err != nil {
		t.Fatal(err)
	}
	used.Annotations[mpi.AnnotationAllowEgress] = "8080"
	return trainjob.Convert(trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: like.Namespace, Name: like.Name, UID: "uid-trainjob"}}, used)
}

func TestWhoReachesWhom(t *testing.T) {
	operatorLabels := map[string]string{"app.kubernetes.io/name": "mpijob-operator"}
	named := func(namespace, name string) mpi.Job {
		return mpitest.Job(2, func(j *mpi.Job) { j.Namespace, j.Name, j.UID = namespace, name, types.UID(namespace+name) })
	}
	pod := func(job mpi.Job, role mpi.Role, address string) place {
		return place{job.Namespace, job.PodLabels(role), address}
	}
	job, neighbour, namesake := named("ns", "pi"), named("ns", "other"), named("elsewhere", "pi")
	launcher, worker := pod(job, mpi.RoleLauncher, "10.128.0.1"), pod(job, mpi.RoleWorker, "10.128.0.2")
	hasAll := place{"elsewhere", worker.labels, "10.128.0.9"}
	stranger := place{"ns", map[string]string{"app": "pi"}, "10.128.0.10"}
	operator := place{"mpijob-system", operatorLabels, "10.128.0.11"}
	poser := place{"elsewhere", operatorLabels, "10.128.0.12"}
	besideOperator := place{"mpijob-system", nil, "10.128.0.13"}
	dns := place{"openshift-dns", map[string]string{"dns": "default"}, "10.128.0.14"}
	nodeDNS := place{address: "169.254.20.10"}
	minio := place{"minio", nil, "10.128.0.15"}
	web := place{address: "203.0.113.7"}
	storage := place{address: "192.0.2.7"}
	webIPv6 := place{address: "2001:db8::7"}

	trained := trainJob(t, job)
	node := place{"ns", map[string]string{"jobset.sigs.k8s.io/jobset-name": "pi", "jobset.sigs.k8s.io/replicatedjob-name": "node"}, "10.128.0.16"}
	both := place{"ns", map[string]string{"jobset.sigs.k8s.io/jobset-name": "pj"}, "10.128.0.17"}

	const tcp, udp, sctp = corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP
	open := jobstate.Observed{AllowEgress: "192.0.2.0/24:2049, namespace/minio:9000-9010, wrong"}
	tests := map[string]struct {
		from, to place
		protocol corev1.Protocol
		port     int32
		// want is what is let through by default, open where the namespace allows more.
		want, open bool
	}{
		"launcher to its worker's agent":             {launcher, worker, tcp, 2222, true, true},
		"worker back to its launcher, any port":      {worker, launcher, tcp, 45678, true, true},
		"rank to rank over UDP":                      {worker, worker, udp, 50000, true, true},
		"rank to rank over SCTP":                     {worker, worker, sctp, 1, true, true},
		"to another job's agent":                     {launcher, pod(neighbour, mpi.RoleWorker, "10.128.0.3"), tcp, 2222, false, false},
		"to another job's status":                    {launcher, pod(neighbour, mpi.RoleWorker, "10.128.0.3"), tcp, 2223, false, false},
		"to another job on the port that goes out":   {launcher, pod(neighbour, mpi.RoleWorker, "10.128.0.3"), tcp, 443, false, false},
		"to another job on the port of names":        {launcher, pod(neighbour, mpi.RoleWorker, "10.128.0.3"), udp, 53, false, false},
		"from another job":                           {pod(neighbour, mpi.RoleLauncher, "10.128.0.4"), worker, tcp, 2222, false, false},
		"to a job of the same name elsewhere":        {launcher, pod(namesake, mpi.RoleWorker, "10.128.0.5"), tcp, 2222, false, false},
		"from a job of the same name elsewhere":      {pod(namesake, mpi.RoleLauncher, "10.128.0.6"), worker, tcp, 2222, false, false},
		"from elsewhere with all the job's labels":   {hasAll, worker, tcp, 2222, false, false},
		"from a stranger in the namespace":           {stranger, worker, tcp, 2222, false, false},
		"from a stranger to the status":              {stranger, worker, tcp, 2223, false, false},
		"from outside":                               {web, worker, tcp, 2222, false, false},
		"to a service of the project":                {launcher, stranger, tcp, 8080, true, true},
		"a TrainJob to a service of the project":     {node, stranger, tcp, 8080, true, true},
		"to a service of another project":            {launcher, place{"elsewhere", stranger.labels, "10.128.0.18"}, tcp, 8080, false, false},
		"to a TrainJob without MPI":                  {launcher, both, tcp, 8080, false, false},
		"to a Job of Kubernetes":                     {launcher, place{"ns", map[string]string{"batch.kubernetes.io/job-name": "load"}, "10.128.0.19"}, tcp, 8080, false, false},
		"to a Ray cluster":                           {launcher, place{"ns", map[string]string{"ray.io/cluster": "tune"}, "10.128.0.20"}, tcp, 6379, false, false},
		"operator to the status":                     {operator, worker, tcp, 2223, false, false},
		"operator to the launcher's status":          {operator, launcher, tcp, 2223, false, false},
		"operator to the agent":                      {operator, worker, tcp, 2222, false, false},
		"operator to the status over UDP":            {operator, worker, udp, 2223, false, false},
		"another pod beside the operator":            {besideOperator, worker, tcp, 2223, false, false},
		"a pod elsewhere with the operator's labels": {poser, worker, tcp, 2223, false, false},
		"rank to the operator":                       {worker, operator, tcp, 8081, false, false},
		"names of OpenShift's DNS":                   {launcher, dns, udp, 5353, true, true},
		"names over TCP":                             {launcher, dns, tcp, 5353, true, true},
		"names of a DNS on the node":                 {launcher, nodeDNS, udp, 53, true, true},
		"another port of DNS":                        {launcher, dns, tcp, 9154, false, false},
		"HTTPS":                                      {launcher, web, tcp, 443, true, true},
		"HTTPS by IPv6":                              {launcher, webIPv6, tcp, 443, true, true},
		"HTTPS over UDP":                             {launcher, web, udp, 443, false, false},
		"HTTP":                                       {launcher, web, tcp, 80, false, false},
		"the cloud's metadata":                       {launcher, place{address: "169.254.169.254"}, tcp, 80, false, false},
		"the cloud's metadata by HTTPS":              {launcher, place{address: "169.254.169.254"}, tcp, 443, false, false},
		"the node's metadata by HTTPS and IPv6":      {launcher, place{address: "fe80::1"}, tcp, 443, false, false},
		"HTTPS of another project":                   {launcher, minio, tcp, 443, true, true},
		"API server":                                 {launcher, place{address: "10.0.0.1"}, tcp, 6443, true, true},
		"kubelet":                                    {launcher, place{address: "10.0.0.1"}, tcp, 10250, false, false},
		"NFS":                                        {worker, storage, tcp, 2049, false, true},
		"NFS over UDP":                               {worker, storage, udp, 2049, false, false},
		"NFS elsewhere":                              {worker, web, tcp, 2049, false, false},
		"another port of the storage":                {worker, storage, tcp, 22, false, false},
		"object storage":                             {worker, minio, tcp, 9005, false, true},
		"another port of object storage":             {worker, minio, tcp, 9011, false, false},
		"object storage comes in":                    {minio, worker, tcp, 9000, false, false},
		"within a TrainJob":                          {node, node, tcp, 45678, true, true},
		"operator to a TrainJob's status":            {operator, node, tcp, 2223, false, false},
		"a TrainJob to the MPIJob of its name":       {node, worker, tcp, 2222, false, false},
		"an MPIJob to the TrainJob of its name":      {launcher, node, tcp, 2222, false, false},
		"another TrainJob":                           {both, node, tcp, 2222, false, false},
		"a TrainJob's HTTPS":                         {node, web, tcp, 443, true, true},
		"a TrainJob's NFS":                           {node, storage, tcp, 2049, false, true},
		"what the runtime allows, to its TrainJobs":  {node, web, tcp, 8080, true, true},
		"what the runtime allows, to MPIJobs":        {worker, web, tcp, 8080, false, false},
		"strangers among themselves":                 {stranger, minio, tcp, 80, true, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			for about, with := range map[string]struct {
				seen jobstate.Observed
				want bool
			}{"by default": {want: test.want}, "with more allowed": {open, test.open}} {
				var all policies
				for _, j := range []mpi.Job{job, neighbour, namesake, trained} {
					all = append(all, isolationOf(j, with.seen, isolating))
				}
				if got := all.let(t, test.from, test.to, test.protocol, test.port); got != with.want {
					t.Errorf("%s: let through: %v, want %v", about, got, with.want)
				}
			}
		})
	}
}

func TestIsolationChanges(t *testing.T) {
	job := mpitest.Job(1)
	there := func(change ...func(*jobstate.Observed)) jobstate.Observed {
		seen := settled(t, job)
		for _, c := range change {
			c(&seen)
		}
		return seen
	}
	byRuntime := func(text string) mpi.Job {
		return mpitest.Job(1, func(j *mpi.Job) { j.AllowEgress = text })
	}
	made := func(by mpi.Job) jobstate.Observed {
		policy := isolationOf(by, jobstate.Observed{}, isolating)
		policy.UID = "uid-policy"
		return there(func(o *jobstate.Observed) { o.Isolation = policy })
	}
	endpoints := func(text string) jobstate.Observed {
		policy := isolationOf(job, jobstate.Observed{Endpoints: text}, isolating)
		return there(func(o *jobstate.Observed) { o.Isolation, o.Endpoints = policy, text })
	}
	onHosts := mpitest.Job(1, func(j *mpi.Job) { j.Workers.Template.Spec.HostNetwork = true })
	onHostsTrainJob := trainJob(t, job)
	onHostsTrainJob.Launcher.Template.Spec.HostNetwork, onHostsTrainJob.Workers.Template.Spec.HostNetwork = true, true
	unwatched := isolating
	unwatched.OperatorNamespace = ""
	wide := isolating
	wide.AllowEgress = "3128"
	withoutMPI := trainjob.Convert(trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: "pi", UID: "uid-trainjob"}}, trainjob.Runtime{})
	everyTrainJob := isolating
	everyTrainJob.IsolatesAllTrainJobs = true
	tests := map[string]struct {
		job      mpi.Job
		seen     jobstate.Observed
		settings plan.Settings
		want     map[string][]string
	}{
		"it is there":                          {job, there(), isolating, map[string][]string{}},
		"it is gone":                           {job, there(func(o *jobstate.Observed) { o.Isolation = nil }), isolating, map[string][]string{"create": {"NetworkPolicy/pi"}}},
		"the namespace allows more":            {job, there(func(o *jobstate.Observed) { o.AllowEgress = "2049" }), isolating, map[string][]string{"mend": {"NetworkPolicy/pi"}}},
		"the namespace's text says nothing":    {job, there(func(o *jobstate.Observed) { o.AllowEgress = "nfs" }), isolating, map[string][]string{}},
		"the cluster allows more":              {job, there(), wide, map[string][]string{"mend": {"NetworkPolicy/pi"}}},
		"the operator moved":                   {job, there(), unwatched, map[string][]string{}},
		"the runtime was changed since":        {byRuntime("22"), made(byRuntime("2049")), isolating, map[string][]string{}},
		"the runtime allows more since":        {byRuntime("22"), made(job), isolating, map[string][]string{}},
		"a connection has an endpoint":         {job, there(func(o *jobstate.Observed) { o.Endpoints = "data=9000" }), isolating, map[string][]string{"mend": {"NetworkPolicy/pi"}}},
		"a connection has none":                {job, there(func(o *jobstate.Observed) { o.Endpoints = "data=" }), isolating, map[string][]string{"mend": {"NetworkPolicy/pi"}}},
		"the endpoint is in the policy":        {job, endpoints("data=9000"), isolating, map[string][]string{}},
		"they are off":                         {job, there(func(o *jobstate.Observed) { o.Isolation = nil }), plan.Settings{}, map[string][]string{}},
		"they were switched off":               {job, there(), plan.Settings{}, map[string][]string{"delete": {"NetworkPolicy/pi/uid-base"}}},
		"they were switched off after its end": {job, there(func(o *jobstate.Observed) { finished(&job, o) }), plan.Settings{}, map[string][]string{"delete": {"NetworkPolicy/pi/uid-base"}}},
		"it is gone after the job's end":       {job, there(func(o *jobstate.Observed) { finished(&job, o); o.Isolation = nil }), isolating, map[string][]string{}},
		"the job is going":                     {mpitest.Job(1, func(j *mpi.Job) { j.Lifecycle.Deleting, j.Lifecycle.Orphaning = true, true }), there(), plan.Settings{}, map[string][]string{}},
		"a TrainJob whose runtime is gone": {
			trainjob.Convert(trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Name: "pi"}}, trainjob.Runtime{}), jobstate.Observed{Isolation: there().Isolation}, isolating, map[string][]string{},
		},
		"a TrainJob without MPI":                                              {withoutMPI, jobstate.Observed{}, isolating, map[string][]string{}},
		"a TrainJob without MPI, and all TrainJobs are isolated":              {withoutMPI, jobstate.Observed{}, everyTrainJob, map[string][]string{"create": {"NetworkPolicy/pi.trainjob"}}},
		"a TrainJob without MPI, and all TrainJobs were isolated before":      {withoutMPI, jobstate.Observed{Isolation: isolationOf(withoutMPI, jobstate.Observed{}, everyTrainJob)}, isolating, map[string][]string{}},
		"a TrainJob without MPI, and policies are off, but for all TrainJobs": {withoutMPI, jobstate.Observed{}, plan.Settings{IsolatesAllTrainJobs: true}, map[string][]string{}},
		"its workers are in their nodes' network": {
			onHosts, there(), isolating, map[string][]string{},
		},
		"its workers in their nodes' network have addresses": {
			onHosts, there(func(o *jobstate.Observed) {
				for i, worker := range o.Workers {
					pod := worker.Pod.DeepCopy()
					pod.Status.HostIP, pod.Spec.HostNetwork = "10.0.0.7", true
					o.Workers[i].Pod = pod
				}
			}), isolating, map[string][]string{"mend": {"NetworkPolicy/pi"}},
		},
		"all of its pods are in their nodes' network": {
			mpitest.Job(1, func(j *mpi.Job) {
				j.Launcher.Template.Spec.HostNetwork, j.Workers.Template.Spec.HostNetwork = true, true
			}), there(func(o *jobstate.Observed) { o.Isolation = nil }), isolating, map[string][]string{},
		},
		"all of its pods are to be in their nodes' network": {
			mpitest.Job(1, func(j *mpi.Job) {
				j.Launcher.Template.Spec.HostNetwork, j.Workers.Template.Spec.HostNetwork = true, true
			}), there(), isolating, map[string][]string{},
		},
		"a TrainJob's runtime puts its pods into their nodes' network": {
			onHostsTrainJob, jobstate.Observed{}, isolating, map[string][]string{"create": {"NetworkPolicy/pi.trainjob"}},
		},
		"a TrainJob's runtime would put pods that have addresses into their nodes' network": {
			onHostsTrainJob, jobstate.Observed{
				Isolation: isolationOf(onHostsTrainJob, jobstate.Observed{}, isolating),
				Workers:   []jobstate.Worker{{Pod: &corev1.Pod{Status: corev1.PodStatus{HostIP: "10.0.0.7", PodIP: "10.128.0.7"}}}},
			}, isolating, map[string][]string{},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			out := jobstate.Judge(test.job, test.seen)
			if diff := cmp.Diff(test.want, names(plan.For(test.job, test.seen, out, test.settings))); diff != "" {
				t.Errorf("the plan differs (-want +got):\n%s", diff)
			}
		})
	}
}

// TestEndpointsAreReached: the endpoints of data connections are reached, and neither other ports nor metadata services.
func TestEndpointsAreReached(t *testing.T) {
	job := mpitest.Job(1)
	launcher := place{job.Namespace, job.PodLabels(mpi.RoleLauncher), "10.128.0.1"}
	all := policies{isolationOf(job, jobstate.Observed{Endpoints: "data=namespace/minio:9000,192.0.2.7/32:2049;model=8333"}, isolating)}
	for name, test := range map[string]struct {
		to   place
		port int32
		want bool
	}{
		"a Service elsewhere":           {place{"minio", nil, "10.128.0.15"}, 9000, true},
		"its other port":                {place{"minio", nil, "10.128.0.15"}, 9001, false},
		"another namespace":             {place{"other", nil, "10.128.0.16"}, 9000, false},
		"an address":                    {place{address: "192.0.2.7"}, 2049, true},
		"another address":               {place{address: "192.0.2.8"}, 2049, false},
		"a name":                        {place{address: "203.0.113.7"}, 8333, true},
		"a name, by IPv6":               {place{address: "2001:db8::7"}, 8333, true},
		"the metadata service":          {place{address: "169.254.169.254"}, 8333, false},
		"the metadata service, by IPv6": {place{address: "fd00:ec2::254"}, 8333, false},
		"link-local, by IPv6":           {place{address: "fe80::1"}, 8333, false},
	} {
		if got := all.let(t, launcher, test.to, corev1.ProtocolTCP, test.port); got != test.want {
			t.Errorf("%s: let through: %v, want %v", name, got, test.want)
		}
	}
}

// TestIsolationAllows shows what each way to allow more becomes.
func TestIsolationAllows(t *testing.T) {
	job := mpitest.Job(1, func(j *mpi.Job) { j.AllowEgress = "namespace/models" })
	seen := jobstate.Observed{AllowEgress: "192.0.2.0/24:2049,514/udp,nonsense"}
	settings := isolating
	settings.AllowEgress = "9000-9010"
	mpitest.Golden(t, "isolation-allows-more", isolationOf(job, seen, settings))
	seen = jobstate.Observed{Endpoints: "data=namespace/storage:9000,10.0.0.7/32:9000,[fd00::7/128]:9000;known=;model=9000,169.254.169.254:80,namespace/kube-system:9000"}
	mpitest.Golden(t, "isolation-endpoints", isolationOf(mpitest.Job(1), seen, isolating))
	mpitest.Golden(t, "isolation-trainjob", isolationOf(trainJob(t, job), jobstate.Observed{}, isolating))
}

// TestRuntimeOfNamespaceOpensNoMetadata: what a TrainingRuntime, which users of the namespace may maintain, allows does not
// include the addresses at which nodes and clouds answer with credentials. That of an administrator may.
func TestRuntimeOfNamespaceOpensNoMetadata(t *testing.T) {
	const list = "169.254.169.254:80,169.254.0.0/16:81,169.0.0.0/8:82,0.0.0.0/0:83,84,[fe80::1]:85,namespace/minio:86,192.0.2.7:87,[::/0]:88"
	var used trainjob.Runtime
	used.Annotations = map[string]string{mpi.AnnotationAllowEgress: list}
	used.Spec.MLPolicy = &trainjob.MLPolicy{MPI: &trainjob.MPIPolicy{}}
	policyOf := func(kind string) policies {
		from := trainjob.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi", UID: "uid"}}
		from.Spec.RuntimeRef.Kind = kind
		return policies{isolationOf(trainjob.Convert(from, used), jobstate.Observed{}, isolating)}
	}
	node := place{"ns", map[string]string{"jobset.sigs.k8s.io/jobset-name": "pi"}, "10.128.0.16"}
	cloud, link := place{address: "169.254.169.254"}, place{address: "fe80::1"}
	for name, test := range map[string]struct {
		to             place
		port           int32
		byUser, byRoot bool
	}{
		"metadata":                        {cloud, 80, false, true},
		"link-local addresses":            {cloud, 81, false, true},
		"a range around them":             {cloud, 82, false, true},
		"all addresses":                   {cloud, 83, false, true},
		"a port":                          {cloud, 84, false, true},
		"link-local addresses of IPv6":    {link, 85, false, true},
		"all addresses of IPv6":           {link, 88, false, true},
		"others of the range":             {place{address: "169.253.0.1"}, 82, true, true},
		"others of all":                   {place{address: "203.0.113.7"}, 83, true, true},
		"others at the port":              {place{address: "203.0.113.7"}, 84, true, true},
		"others at the port by IPv6":      {place{address: "2001:db8::7"}, 84, true, true},
		"pods at the port":                {place{"other", nil, "10.128.0.17"}, 84, true, true},
		"a namespace":                     {place{"minio", nil, "10.128.0.15"}, 86, true, true},
		"an address":                      {place{address: "192.0.2.7"}, 87, true, true},
		"a port that nobody has asked of": {place{address: "203.0.113.7"}, 89, false, false},
	} {
		for kind, want := range map[string]bool{trainjob.RuntimeKind: test.byUser, trainjob.ClusterRuntimeKind: test.byRoot} {
			if got := policyOf(kind).oneWay(t, networkingv1.PolicyTypeEgress, node, test.to, corev1.ProtocolTCP, test.port); got != want {
				t.Errorf("%s by a %s: let through: %v, want %v", name, kind, got, want)
			}
		}
	}
}
