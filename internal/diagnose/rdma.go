package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/mpi"
)

var rdmaTexts = map[mpi.Code]text{
	mpi.CodeRDMANotOffered: {
		summary: "{who} cannot be placed: each asks for {want}, and no machine that can be used has any{offer}.",
		remedies: []Remedy{
			{Text: "{first|Leave it out: the job then runs over TCP, more slowly.}", Action: "{field}.spec.containers[0].resources.limits[{resource}]"},
			{Text: "If machines have RDMA, ask whoever runs the cluster for the device plugin that offers it (of the NVIDIA Network Operator, or of SR-IOV), and for the name under which it does.", Action: "kubectl get nodes -o yaml | grep -i rdma"},
		},
	},
	mpi.CodeRDMANotUsed: {
		summary: "RDMA was asked for ({resource}) and {is|is not used}: {how}. {expect|Expect the job to be slower.}",
		remedies: []Remedy{
			{Text: "{first}", Action: "{firstAction}"},
			{Text: "{second}", Action: "{secondAction}"},
			{Text: "See that the pods have the network's device and may lock memory; the last should say unlimited.", Action: "kubectl -n {namespace} exec {worker} -- sh -c 'ls /dev/infiniband; ulimit -l'"},
			{Text: "Have MPI fail where it cannot use RDMA, in place of being slow.", Action: "{insist}"},
			{Text: "If TCP is fast enough, do not ask for RDMA: its devices are then free for others.", Action: "{workerTemplate}.spec.containers[0].resources.limits[{resource}]"},
		},
	},
	mpi.CodeNetworkMissing: {
		summary: "{who} cannot start: its annotation k8s.v1.cni.cncf.io/networks names the network {network}, and there is none of that name in the namespace {in}.",
		remedies: []Remedy{
			{Text: "See which networks there are, and correct the name; one of another namespace is written as namespace/name.", Action: "kubectl get network-attachment-definitions -A"},
			{Text: "The annotation stands here.", Action: "{field}.metadata.annotations"},
		},
	},
}

// isRDMA tells whether a resource is a device for RDMA, or a network that has it: names that device plugins and clouds
// give them. Administrators choose names of their own as well, which nobody can know.
func isRDMA(name corev1.ResourceName) bool {
	lowered := strings.ToLower(string(name))
	if !strings.Contains(lowered, "/") {
		return false
	}
	return slices.ContainsFunc([]string{"rdma", "/hca", "infiniband", "roce", "/ib_", "/efa"}, func(part string) bool { return strings.Contains(lowered, part) })
}

// rdma is the first RDMA resource that a pod asks for; empty where it asks for none.
func rdma(pod corev1.PodSpec) corev1.ResourceName {
	for _, name := range sortedNames(mpi.Requests(pod)) {
		if isRDMA(name) {
			return name
		}
	}
	return ""
}

// rdmaNotOffered tells that pods wait for an RDMA device of a name that no machine has; false where it is not so.
func (p *patient) rdmaNotOffered(pods []jobPod, short [][]string) (Finding, bool) {
	name := rdma(p.template(pods[0].role))
	if name == "" || len(p.evidence.Nodes) == 0 || !slices.ContainsFunc(short, func(s []string) bool { return s[2] == string(name) }) {
		return Finding{}, false
	}
	asked := mpi.Requests(p.template(pods[0].role))[name]
	if p.room(name, asked).with > 0 {
		return Finding{}, false
	}
	figures := map[string]string{"resource": string(name), "want": amount(name, asked) + " " + string(name)}
	offers := p.rdmaOffers()
	if len(offers) > 0 {
		figures["offer"] = "; they offer " + strings.Join(offers, ", ")
		figures["first"] = "Ask for what the machines offer."
	}
	f := p.find(mpi.CodeRDMANotOffered, Error, pods, figures)
	f.Evidence = []string{fmt.Sprintf("%s: 0 of %d machines have any.", name, len(p.evidence.Nodes))}
	return f, true
}

// rdmaOffers are the RDMA resources that machines have, each with how many.
func (p *patient) rdmaOffers() []string {
	all := corev1.ResourceList{}
	for _, node := range p.evidence.Nodes {
		for name, quantity := range node.Allocatable {
			if isRDMA(name) && !quantity.IsZero() && node.Ready && !node.Unschedulable {
				all[name] = quantity
			}
		}
	}
	var offers []string
	for _, name := range sortedNames(all) {
		offers = append(offers, fmt.Sprintf("%s (%d machines)", name, p.room(name, all[name]).with))
	}
	return offers
}

// fallback is a text by which a library tells that it does without RDMA.
type fallback struct {
	text    *regexp.Regexp
	how     string
	remedy  Remedy
	perhaps bool
}

var (
	raiseMemlock = Remedy{Text: "Ask whoever runs the cluster to lift the limit of locked memory for containers on these machines. The capability IPC_LOCK helps programs that run as root alone.", Action: "LimitMEMLOCK=infinity for the container runtime"}
	bringVerbs   = Remedy{Text: "Install in the image what RDMA needs: libibverbs with the drivers of the machines' network cards, and librdmacm.", Action: "dnf install libibverbs librdmacm rdma-core, or apt-get install ibverbs-providers librdmacm1"}
	addNetwork   = Remedy{Text: "Where RDMA is on a network of its own, as with RoCE and SR-IOV, attach launcher and workers to it.", Action: "{field}.metadata.annotations[k8s.v1.cni.cncf.io/networks]"}
	nameDevice   = Remedy{Text: "Let UCX choose the device, or name one that it lists as (ib).", Action: "env: UCX_NET_DEVICES=all"}
)

// fallbacks are the texts of UCX, libibverbs, NCCL, Intel MPI and Open MPI, those first that name a cause. Some come from
// parts of Open MPI that are not needed where it has UCX.
var fallbacks = []fallback{
	{text: regexp.MustCompile(`Please set max locked memory|RLIMIT_MEMLOCK (?:is \d+ bytes|too small)|locked memory limit for this process is too small`), how: "the pods may lock too little memory for it", remedy: raiseMemlock},
	{text: regexp.MustCompile(`libibverbs: Warning: (?:no userspace device-specific driver found|couldn't load driver)`), how: "the image lacks the driver of the network card", remedy: bringVerbs},
	{text: regexp.MustCompile(`UCX\s+WARN\s+(?:network device|transports?) .*not available, please use one or more of: (?:(?:'[^']+'\((?:tcp|memory|self|sysv|posix)\)|cma|knem|xpmem|mm|posix|self|shm|sm|sysv|tcp)(?:, |$))+$`), how: "UCX finds no RDMA device in the pod", remedy: nameDevice},
	{text: regexp.MustCompile(`NET/IB : No device found`), how: "NCCL finds no RDMA device in the pod and moves data over TCP", remedy: bringVerbs},
	{text: regexp.MustCompile(`NCCL INFO Using network Socket\b|\[(?:send|receive)\] via NET/Socket/`), how: "NCCL moves data over TCP", remedy: bringVerbs},
	{text: regexp.MustCompile(`MPI startup\(\): libfabric provider: (?:tcp|sockets)\b`), how: "Intel MPI moves data over TCP", remedy: bringVerbs},
	{text: regexp.MustCompile(`No OpenFabrics connection schemes|error initializing an OpenFabrics device`), how: "Open MPI's older way to RDMA (openib) could not use the device; unless it has UCX, it moves data over TCP", remedy: addNetwork, perhaps: true},
}

// rdmaInUse is what NCCL says where it uses RDMA, by its own means or by a plug-in's.
var rdmaInUse = regexp.MustCompile(`NCCL INFO Using network (?:IB|AWS Libfabric|Libfabric|UCX|RoCE|SHARP|IBext)|via NET/(?:IB|IBext\w*|AWS Libfabric|Libfabric)/|MPI startup\(\): libfabric provider: (?:mlx|verbs|psm|efa)`)

// rdmaNotUsed tells that a job which has RDMA devices does without: it runs, or has run, and is only slower than it
// need be. Ranks' output comes through the launcher.
func rdmaNotUsed(p *patient) []Finding {
	name := rdma(p.template(mpi.RoleWorker))
	if name == "" {
		name = rdma(p.template(mpi.RoleLauncher))
	}
	if name == "" || slices.ContainsFunc(p.pods, func(pod jobPod) bool { return slices.ContainsFunc(pod.log.Lines, rdmaInUse.MatchString) }) {
		return nil
	}
	for _, sign := range fallbacks {
		for _, pod := range p.pods {
			if i := slices.IndexFunc(pod.log.Lines, sign.text.MatchString); i >= 0 {
				return []Finding{p.withoutRDMA(name, sign, pod, pod.log.Lines[i])}
			}
		}
	}
	return nil
}

func (p *patient) withoutRDMA(name corev1.ResourceName, sign fallback, pod jobPod, line string) Finding {
	second, severity, is, expect := addNetwork, Warning, "", ""
	switch {
	case sign.perhaps:
		second, severity, is, expect = bringVerbs, Info, "may not be used", "Then the job is slower."
	case sign.remedy == nameDevice:
		second = bringVerbs
	}
	insist := "env: NCCL_NET=IB"
	switch {
	case p.job.Implementation == mpi.IntelMPI:
		insist = "env: FI_PROVIDER=mlx"
	case !strings.Contains(line, "NCCL"):
		insist = "mpirun --mca pml ucx, with env: UCX_TLS=rc,self,sm"
	}
	figures := map[string]string{"field": p.field(mpi.RoleWorker)}
	f := p.find(mpi.CodeRDMANotUsed, severity, []jobPod{pod}, map[string]string{
		"resource": string(name), "how": sign.how, "is": is, "expect": expect, "insist": insist,
		"first": sign.remedy.Text, "firstAction": fill(sign.remedy.Action, figures), "second": second.Text, "secondAction": fill(second.Action, figures),
	})
	f.Evidence = []string{quoted(pod, line)}
	return f
}

var noNetwork = regexp.MustCompile(`cannot find a network-attachment-definition \(([^)]+)\) in namespace \(([^)]+)\)`)

// networkMissing tells that a pod names a network of Multus that is not there.
func networkMissing(p *patient) []Finding {
	for _, event := range p.events("Pod", func(e mpi.Event) bool { return noNetwork.MatchString(e.Message) }) {
		pod := p.startingPod(event.Name)
		if pod == nil {
			continue
		}
		names := noNetwork.FindStringSubmatch(event.Message)
		f := p.find(mpi.CodeNetworkMissing, p.severity(), []jobPod{*pod}, map[string]string{"network": names[1], "in": names[2]})
		f.Evidence = []string{saying(event)}
		return []Finding{f}
	}
	return nil
}
