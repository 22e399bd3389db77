package diagnose_test

import (
	"strings"
	"testing"

	"opendatahub.io/mpijob/internal/codes"
)

// gpuCases are what programs print of GPUs and their libraries before they end.
var gpuCases = map[string]ownError{
	"terminate called after throwing an instance of 'c10::Error'\n  what():  CUDA error: device-side assert triggered":                {"GPU assertion", "let each call wait"},
	"CUDA error at loss.cu:9 code=710(cudaErrorAssert) \"cudaDeviceSynchronize()\"":                                                   {"GPU assertion", "let each call wait"},
	"RuntimeError: CUDA error: an illegal memory access was encountered":                                                              {"GPU memory access", "memory that is not its own"},
	"torch.AcceleratorError: CUDA error: an illegal memory access was encountered":                                                    {"GPU memory access", "memory that is not its own"},
	"CUDA error at stencil.cu:112 code=700(cudaErrorIllegalAddress) \"cudaDeviceSynchronize()\"":                                      {"GPU memory access", "memory that is not its own"},
	"GPUassert: an illegal memory access was encountered stencil.cu 112":                                                              {"GPU memory access", "memory that is not its own"},
	"Failing in Thread:1\ncall to cuStreamSynchronize returned error 700: Illegal address during kernel execution":                    {"GPU memory access", "Xid 13 and 31"},
	"Memory access fault by GPU node-4 (Agent handle: 0x55d0) on address 0x7f1c00000000. Reason: Unknown.":                            {"GPU memory access", "memory that is not its own"},
	"RuntimeError: CUDA error: unspecified launch failure":                                                                            {"GPU memory access", "memory that is not its own"},
	"RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable":                                                      {"GPU in use", "in a mode for one process"},
	"RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable":                                                     {"GPU in use", "in a mode for one process"},
	"RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.":                                          {"GPU code", "driver of the node's GPUs is older"},
	"RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing env variable":             {"GPU initialization", "before the program first uses CUDA"},
	"RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle, opa, opb, m, n, k)`":                 {"GPU libraries", "A library of CUDA failed"},
	"RuntimeError: cuDNN error: CUDNN_STATUS_EXECUTION_FAILED":                                                                        {"GPU libraries", "A library of CUDA failed"},
	"RuntimeError: CUDA error: peer mapping resources exhausted":                                                                      {"GPU peers", "cannot read each other's memory"},
	"torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1691, invalid usage (run with NCCL_DEBUG=WARN)":       {"NCCL calls", "contiguous tensors"},
	"torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1691, internal error - please report this issue":      {"NCCL calls", "NCCL's log"},
	"torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered\nSearch for `cudaErrorECCUncorrectable' in the docs":     {"broken GPU", "Report the node"},
	"CUDA error at main.cu:7 code=214(cudaErrorECCUncorrectable) \"cudaMemcpy(a, b, n, cudaMemcpyDeviceToHost)\"":                     {"broken GPU", "Report the node"},
	"NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=train, GPU has fallen off the bus.":                                               {"broken GPU", "Report the node"},
	"Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error":                                                        {"broken GPU", "Report the node"},
	"RuntimeError: CUDA error: no kernel image is available for execution on the device\nCUDA kernel errors might be asynchronously.": {"GPU model", "the model of the nodes' GPUs"},
}

// TestGPUMessages: what programs print of a GPU leads to its own finding.
func TestGPUMessages(t *testing.T) {
	t.Parallel()
	for log, want := range map[string]struct {
		code codes.Code
		text string
	}{
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 79.15 GiB of which 1.31 GiB is free.":  {codes.GPUOutOfMemory, "allocation of 2.50 GiB failed (GPU memory: 79.15 GiB)"},
		"torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity; 14.56 GiB already allocated)": {codes.GPUOutOfMemory, "allocation of 20.00 MiB failed (GPU memory: 15.78 GiB)"},
		"torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 63.98 GiB of which 1 GiB is free.":      {codes.GPUOutOfMemory, "allocation of 2.00 GiB failed (GPU memory: 63.98 GiB)"},
		"torch.OutOfMemoryError: XPU out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 47.98 GiB.":                             {codes.GPUOutOfMemory, "allocation of 2.00 GiB failed (GPU memory: 47.98 GiB)"},
		"cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000,000,000 bytes (allocated so far: 512 bytes).":                              {codes.GPUOutOfMemory, "allocation of 8,000,000,000 bytes failed"},
		"MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /rmm/mr/device/cuda_memory_resource.hpp":                                          {codes.GPUOutOfMemory, "GPU out of memory"},
		"CUDA error at main.cu:7 code=2(cudaErrorMemoryAllocation) \"cudaMalloc(&a, n)\"":                                                             {codes.GPUOutOfMemory, "GPU out of memory"},
		"call to cuMemAlloc returned error 2: Out of memory":                                                                                          {codes.GPUOutOfMemory, "GPU out of memory"},
		"torch.distributed.DistBackendError: NCCL error in: ../ProcessGroupNCCL.cpp:1691, unhandled system error (run with NCCL_DEBUG=INFO)":          {codes.NCCLSystemError, "NCCL reported a system error"},
		"torch.distributed.DistBackendError: NCCL error in: ../x.cpp:1, invalid usage\nDuplicate GPU detected : rank 1 and rank 0 both on 1000":       {codes.WrongGPU, "selected a GPU"},
	} {
		found := failed(1, log).findings()
		if len(found) == 0 || found[0].Code != want.code || !strings.Contains(found[0].Summary, want.text) {
			t.Errorf("%q: found %+v", log, found)
		}
		for _, f := range found {
			sound(t, f)
		}
	}
	// What a program prints of its GPUs otherwise is no error.
	for _, log := range []string{"CUDA errors: 0", "CUDA error checks are on", "GPU 0 had 2 Xid errors since boot"} {
		if found := failed(1, log).findings(); len(found) > 0 && strings.Contains(found[0].Summary, log) {
			t.Errorf("%q: found %+v", log, found)
		}
	}
}
