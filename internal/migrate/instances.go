package migrate

import (
	"maps"
	"slices"
)

// Instance is the size of a machine.
type Instance struct {
	// CPUs are its virtual CPUs, MemoryGiB its memory, and Devices the number of its accelerators.
	CPUs, MemoryGiB, Devices int64
	// Device is the resource of the accelerators, such as nvidia.com/gpu.
	Device string
}

const (
	nvidia = "nvidia.com/gpu"
	neuron = "aws.amazon.com/neuron"
)

// families are the instance types of SageMaker that training jobs run on: vCPUs, GiB, accelerators by size, as Amazon
// publishes them for EC2.
var families = map[string]struct {
	device string
	sizes  map[string][3]int64
}{
	"p2":      {nvidia, map[string][3]int64{"xlarge": {4, 61, 1}, "8xlarge": {32, 488, 8}, "16xlarge": {64, 732, 16}}},
	"p3":      {nvidia, map[string][3]int64{"2xlarge": {8, 61, 1}, "8xlarge": {32, 244, 4}, "16xlarge": {64, 488, 8}}},
	"p3dn":    {nvidia, map[string][3]int64{"24xlarge": {96, 768, 8}}},
	"p4d":     {nvidia, map[string][3]int64{"24xlarge": {96, 1152, 8}}},
	"p4de":    {nvidia, map[string][3]int64{"24xlarge": {96, 1152, 8}}},
	"p5":      {nvidia, map[string][3]int64{"4xlarge": {16, 256, 1}, "48xlarge": {192, 2048, 8}}},
	"p5e":     {nvidia, map[string][3]int64{"48xlarge": {192, 2048, 8}}},
	"p5en":    {nvidia, map[string][3]int64{"48xlarge": {192, 2048, 8}}},
	"p6-b200": {nvidia, map[string][3]int64{"48xlarge": {192, 2048, 8}}},
	"g4dn": {nvidia, map[string][3]int64{
		"xlarge": {4, 16, 1}, "2xlarge": {8, 32, 1}, "4xlarge": {16, 64, 1}, "8xlarge": {32, 128, 1}, "12xlarge": {48, 192, 4}, "16xlarge": {64, 256, 1},
	}},
	"g5": {nvidia, map[string][3]int64{
		"xlarge": {4, 16, 1}, "2xlarge": {8, 32, 1}, "4xlarge": {16, 64, 1}, "8xlarge": {32, 128, 1}, "12xlarge": {48, 192, 4}, "16xlarge": {64, 256, 1},
		"24xlarge": {96, 384, 4}, "48xlarge": {192, 768, 8},
	}},
	"g6": {nvidia, map[string][3]int64{
		"xlarge": {4, 16, 1}, "2xlarge": {8, 32, 1}, "4xlarge": {16, 64, 1}, "8xlarge": {32, 128, 1}, "12xlarge": {48, 192, 4}, "16xlarge": {64, 256, 1},
		"24xlarge": {96, 384, 4}, "48xlarge": {192, 768, 8},
	}},
	"g6e": {nvidia, map[string][3]int64{
		"xlarge": {4, 32, 1}, "2xlarge": {8, 64, 1}, "4xlarge": {16, 128, 1}, "8xlarge": {32, 256, 1}, "12xlarge": {48, 384, 4}, "16xlarge": {64, 512, 1},
		"24xlarge": {96, 768, 4}, "48xlarge": {192, 1536, 8},
	}},
	"trn1":  {neuron, map[string][3]int64{"2xlarge": {8, 32, 1}, "32xlarge": {128, 512, 16}}},
	"trn1n": {neuron, map[string][3]int64{"32xlarge": {128, 512, 16}}},
	"m4": {"", map[string][3]int64{
		"xlarge": {4, 16}, "2xlarge": {8, 32}, "4xlarge": {16, 64}, "10xlarge": {40, 160}, "16xlarge": {64, 256},
	}},
	"m5": {"", map[string][3]int64{
		"large": {2, 8}, "xlarge": {4, 16}, "2xlarge": {8, 32}, "4xlarge": {16, 64}, "12xlarge": {48, 192}, "24xlarge": {96, 384},
	}},
	"m6i": {"", map[string][3]int64{
		"large": {2, 8}, "xlarge": {4, 16}, "2xlarge": {8, 32}, "4xlarge": {16, 64}, "8xlarge": {32, 128}, "12xlarge": {48, 192}, "16xlarge": {64, 256},
		"24xlarge": {96, 384}, "32xlarge": {128, 512},
	}},
	"c5": {"", map[string][3]int64{
		"xlarge": {4, 8}, "2xlarge": {8, 16}, "4xlarge": {16, 32}, "9xlarge": {36, 72}, "18xlarge": {72, 144},
	}},
	"c5n": {"", map[string][3]int64{
		"xlarge": {4, 10}, "2xlarge": {8, 21}, "4xlarge": {16, 42}, "9xlarge": {36, 96}, "18xlarge": {72, 192},
	}},
	"c6i": {"", map[string][3]int64{
		"xlarge": {4, 8}, "2xlarge": {8, 16}, "4xlarge": {16, 32}, "8xlarge": {32, 64}, "12xlarge": {48, 96}, "16xlarge": {64, 128}, "24xlarge": {96, 192}, "32xlarge": {128, 256},
	}},
	"r5": {"", map[string][3]int64{
		"large": {2, 16}, "xlarge": {4, 32}, "2xlarge": {8, 64}, "4xlarge": {16, 128}, "8xlarge": {32, 256}, "12xlarge": {48, 384}, "16xlarge": {64, 512}, "24xlarge": {96, 768},
	}},
}

// instance returns the size of an instance type by its family and size; false if it is unknown.
func instance(family, size string) (Instance, bool) {
	of, known := families[family]
	has, found := of.sizes[size]
	if !known || !found {
		return Instance{}, false
	}
	return Instance{CPUs: has[0], MemoryGiB: has[1], Devices: has[2], Device: of.device}, true
}

// knownFamilies returns the names of the families, sorted.
func knownFamilies() []string { return slices.Sorted(maps.Keys(families)) }
