package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/diagnose/facts"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/podspec"
)

// rdmaNotOffered reports that pods wait for an RDMA device that no node provides; otherwise it returns false.
func (p *input) rdmaNotOffered(pods []facts.Pod, short [][]string) (Finding, bool) {
	name := facts.RDMA(p.Template(pods[0].Role))
	if name == "" || len(p.Evidence.Nodes) == 0 || !slices.ContainsFunc(short, func(s []string) bool { return s[2] == string(name) }) {
		return Finding{}, false
	}
	asked := podspec.Requests(p.Template(pods[0].Role))[name]
	if p.RoomFor(name, asked).With > 0 {
		return Finding{}, false
	}
	figures := map[string]string{"resource": string(name), "want": amount(name, asked) + " " + string(name)}
	offers := p.RdmaOffers()
	if len(offers) > 0 {
		figures["offer"] = " (available: " + strings.Join(offers, ", ") + ")"
		figures["first"] = "Request a resource that the nodes provide."
	}
	f := p.find(codes.RDMANotOffered, pods, figures)
	if p.Job.RDMA.Fixed || p.Job.RDMA.Optional {
		// It has no effect, or the nodes offered RDMA when the first pods were created.
		f.Remedies = slices.DeleteFunc(f.Remedies, func(r v1alpha1.Remedy) bool { return strings.Contains(r.Action, mpi.AnnotationRDMA) })
	}
	f.Evidence = []string{fmt.Sprintf("0 of %d nodes provide %s.", len(p.Evidence.Nodes), name)}
	return f, true
}

// rdmaFallback reports that the job runs without the RDMA that its user requested.
func rdmaFallback(p *input) []Finding {
	removed := p.Job.RDMA.Removed
	if len(removed) == 0 || p.Outcome.Phase == v1alpha1.PhaseQueued {
		return nil
	}
	return []Finding{p.find(codes.RDMAFallback, nil, map[string]string{"resource": mpi.ResourceNames(removed)},
		fmt.Sprintf("No node offered %s when the pods were created.", mpi.ResourceNames(removed)))}
}

// fallback is a text that a library prints if it does not use RDMA.
type fallback struct {
	text    *regexp.Regexp
	how     string
	remedy  v1alpha1.Remedy
	perhaps bool
}

var (
	raiseMemlock = v1alpha1.Remedy{Text: "Ask the cluster administrator to raise the limit of locked memory for containers on these nodes. The capability IPC_LOCK helps programs that run as root alone.", Action: "LimitMEMLOCK=infinity for the container runtime"}
	bringVerbs   = v1alpha1.Remedy{Text: "Install in the image what RDMA needs: libibverbs with the drivers of the machines' network cards, and librdmacm.", Action: "dnf install libibverbs librdmacm rdma-core, or apt-get install ibverbs-providers librdmacm1"}
	addNetwork   = v1alpha1.Remedy{Text: "Where RDMA is on a network of its own, as with RoCE and SR-IOV, attach launcher and workers to it.", Action: "{field}.metadata.annotations[k8s.v1.cni.cncf.io/networks]"}
	nameDevice   = v1alpha1.Remedy{
		Text: "Let UCX choose the device, or select one that it lists with the type (ib).", Action: "env: UCX_NET_DEVICES=all", Rerun: true,
		Changes: []v1alpha1.FieldChange{{Field: "env.UCX_NET_DEVICES", Value: "all"}},
	}
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

// rdmaNotUsed reports that a job with RDMA devices does not use them, and is slower than necessary. The launcher's log
// contains the output of the ranks.
func rdmaNotUsed(p *input) []Finding {
	name := facts.RDMA(p.Template(mpi.RoleWorker))
	if name == "" {
		name = facts.RDMA(p.Template(mpi.RoleLauncher))
	}
	if name == "" || slices.ContainsFunc(p.Pods, func(pod facts.Pod) bool { return slices.ContainsFunc(pod.Log.Lines, rdmaInUse.MatchString) }) {
		return nil
	}
	for _, sign := range fallbacks {
		for _, pod := range p.Pods {
			if i := slices.IndexFunc(pod.Log.Lines, sign.text.MatchString); i >= 0 {
				return []Finding{p.withoutRDMA(name, sign, pod, pod.Log.Lines[i])}
			}
		}
	}
	return nil
}

func (p *input) withoutRDMA(name corev1.ResourceName, sign fallback, pod facts.Pod, line string) Finding {
	second, is, expect := addNetwork, "", ""
	switch {
	case sign.perhaps:
		second, is, expect = bringVerbs, "may not be used", "The job is then slower."
	case sign.remedy.Text == nameDevice.Text:
		second = bringVerbs
	}
	insist, require := "env: NCCL_NET=IB", []v1alpha1.FieldChange{{Field: "env.NCCL_NET", Value: "IB"}}
	switch {
	case p.Job.Implementation == mpi.IntelMPI:
		insist, require = "env: FI_PROVIDER=mlx", []v1alpha1.FieldChange{{Field: "env.FI_PROVIDER", Value: "mlx"}}
	case !strings.Contains(line, "NCCL"):
		insist, require = "mpirun --mca pml ucx, with env: UCX_TLS=rc,self,sm", nil
	}
	figures := map[string]string{"field": p.field(mpi.RoleWorker)}
	f := p.find(codes.RDMANotUsed, []facts.Pod{pod}, map[string]string{
		"resource": string(name), "how": sign.how, "is": is, "expect": expect, "insist": insist,
		"first": sign.remedy.Text, "firstAction": codes.FillAction(sign.remedy.Action, figures), "second": second.Text, "secondAction": codes.FillAction(second.Action, figures),
	})
	for i := range f.Remedies {
		switch remedy := &f.Remedies[i]; remedy.Action {
		case sign.remedy.Action:
			remedy.Rerun, remedy.Changes = sign.remedy.Rerun, slices.Clone(sign.remedy.Changes)
		case insist:
			remedy.Rerun, remedy.Changes = require != nil, require
		}
	}
	if sign.perhaps {
		f.Severity = v1alpha1.SeverityInfo
	}
	f.Evidence = []string{facts.LogLine(pod, line)}
	return f
}
