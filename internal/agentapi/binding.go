package agentapi

import "regexp"

const (
	// EnvCores is the number of CPUs that each worker's main container owns if the CPU manager of its node is static: its pod is of the
	// QoS class Guaranteed, and its CPUs are a whole number. The operator sets it for such workers, and for their launcher.
	EnvCores = "MPI_AGENT_CORES"
	// EnvBind is set in sessions on workers if the launcher's agent decided about binding, and not the user: to BindCore if each rank
	// of the worker can have a core of its own, or else to the reason why ranks are not bound.
	EnvBind = "MPI_AGENT_BIND"
)

// BindingPolicy is what was decided about binding ranks to cores.
type BindingPolicy string

// The binding policies.
const (
	// BindCore means that each rank is bound to a core of its pod, which owns its cores.
	BindCore BindingPolicy = "core"
	// BindShared means that ranks are not bound because pods share their cores.
	BindShared BindingPolicy = "shared"
	// BindHidden means that ranks are not bound because MPI does not find the cores that their pod owns, as with cgroup v1.
	BindHidden BindingPolicy = "hidden"
	// BindSeveral means that ranks are not bound because their pod has more cores than ranks, or ranks have several threads.
	BindSeveral BindingPolicy = "several"
	// BindVersion means that ranks are not bound because the MPI decides for all pods together.
	BindVersion BindingPolicy = "version"
	// BindUser means that the user decided.
	BindUser BindingPolicy = "user"
)

// Binding is how the ranks of a worker, or of a job, are bound to cores.
type Binding struct {
	Policy BindingPolicy `json:"policy"`
	// By is how the user decided, such as "--bind-to core", at most MaxBoundBy bytes.
	By string `json:"by,omitempty"`
	// Hosts is the number of hosts with the policy BindCore if others are shared, or else 0. Only launchers report it.
	Hosts int32 `json:"hosts,omitempty"`
	// Bound are the cores to which the worker's ranks are bound; nil if they may use all of their pod's. Only workers report them.
	Bound *BoundRanks `json:"bound,omitempty"`
	// Clash are ranks of several pods that are bound to the same cores; nil if there are none. Only launchers report it.
	Clash *BoundRanks `json:"clash,omitempty"`
}

// BoundRanks are ranks of a node that are bound to cores.
type BoundRanks struct {
	// Machine is the node's boot ID. Only workers report it.
	Machine string `json:"machine,omitempty"`
	// Hosts are the pods of a clash, at most MaxClashHosts, without the launcher. Pods is how many pods there are.
	Hosts []string `json:"hosts,omitempty"`
	Pods  int32    `json:"pods,omitempty"`
	// CPUs are the CPUs to which the ranks are bound, as a list such as "0-3,8".
	CPUs string `json:"cpus"`
	// Ranks is how many ranks are bound to them, and Usable how many CPUs these could use without it.
	Ranks  int32 `json:"ranks"`
	Usable int32 `json:"usable"`
}

// MaxBoundBy is how many bytes are kept of what the user decided: a list of domains may be long.
const MaxBoundBy = 100

// MaxClashHosts is how many pods a clash names.
const MaxClashHosts = 8

var (
	// bindingNames matches what names a policy of binding: parameters of Open MPI (opal/mca/hwloc/base/hwloc_base_frame.c and
	// orte/mca/rmaps) and of PRRTE (src/hwloc/hwloc.c), and variables of Intel MPI.
	bindingNames = regexp.MustCompile(`\b(?:OMPI_MCA_|PRTE_MCA_)?(?:hwloc_(?:base|default)_(?:binding_policy|bind_to_core|bind_to_socket|cpu_list|cpu_set|slot_list)|rmaps_base_cpus_per_(?:proc|rank)|rmaps_rank_file_path|orte_rankfile)\b|\bI_MPI_PIN(?:_[A-Z]+)*\b`)
	// mappingNames are the parameters of Open MPI and of PRRTE that may name cores among other things.
	mappingNames = regexp.MustCompile(`^(?:OMPI_MCA_|PRTE_MCA_)?rmaps_(?:base|default)_mapping_policy$`)
	// mapsToCores matches a mapping that assigns cores to ranks, which takes effect only if these are bound: with PE=N and ORDERED, PRRTE
	// refuses to start ranks that are not to be bound (src/mca/rmaps/base/rmaps_base_map_job.c), and Open MPI 4 ignores PE=N. PE=1 is what
	// each rank has without it.
	mapsToCores = regexp.MustCompile(`(?i)(?:^|[:,])(?:pe=(?:[^1]|1\d)|ordered\b)|\bpe-list=|\brankfile\b`)
	// isOff matches values by which a variable asks for no binding.
	isOff = regexp.MustCompile(`(?i)^(?:none|0|no|off|false|disable)?$`)
)

// AsksForBinding reports whether a variable, or a parameter of Open MPI, demands that ranks are bound to cores.
func AsksForBinding(name, value string) bool {
	if mappingNames.MatchString(name) {
		return mapsToCores.MatchString(value)
	}
	return name != "" && bindingNames.FindString(name) == name && !isOff.MatchString(value)
}

// DecidesBinding reports whether a variable, or a parameter of Open MPI, says whether ranks are bound to cores, or to which.
func DecidesBinding(name, value string) bool {
	return AsksForBinding(name, value) || name != "" && value != "" && bindingNames.FindString(name) == name
}

// BindingName returns the first variable or parameter that a text, such as a script, names and that decides whether ranks are bound; "" if
// it names none.
func BindingName(text string) string { return bindingNames.FindString(text) }

// NamesBinding reports whether a text, such as a script, names a variable or a parameter that decides whether ranks are bound.
func NamesBinding(text string) bool { return bindingNames.MatchString(text) }
