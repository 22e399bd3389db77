package agentapi

import "regexp"

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

// NamesBinding reports whether a text, such as a script, names a variable or a parameter that decides whether ranks are bound.
func NamesBinding(text string) bool { return bindingNames.MatchString(text) }
