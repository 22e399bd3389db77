package implementation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/implementation"
	"opendatahub.io/mpijob/internal/mpi"
)

// TestSymptoms: the first symptom that a line of a log shows, and the figures in it.
func TestSymptoms(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]struct {
		code    codes.Code
		figures map[string]string
	}{
		"ssh: Could not resolve hostname pi-worker-1.pi: Name or service not known": {codes.NameUnresolved, map[string]string{"host": "pi-worker-1.pi"}},
		"ssh: Could not resolve hostname pi-launcher: Name or service not known":    {codes.LauncherNameUnresolved, map[string]string{"host": "pi-launcher"}},
		"ssh: connect to host pi-worker-0 port 2222: Connection refused":            {codes.ConnectionRefused, map[string]string{"host": "pi-worker-0", "port": "2222"}},
		"Connection refused":                              {},
		"mpi@pi-worker-0: Permission denied (publickey).": {codes.KeyRefused, map[string]string{"host": "pi-worker-0"}},
		"./a: error while loading shared libraries: libcuda.so.1: cannot open shared object file":                             {codes.LibraryMissing, map[string]string{"library": "libcuda.so.1"}},
		"OSError: libsolver.so.2: cannot open shared object file: No such file or directory":                                  {codes.LibraryMissing, map[string]string{"library": "libsolver.so.2"}},
		"dlerror: libcudart.so.11.0: cannot open shared object file: No such file or directory":                               {},
		`/usr/bin/env: 'bash\r': No such file or directory`:                                                                   {codes.WindowsLineEnds, map[string]string{"program": "bash"}},
		`[1,0]<stderr>:./a.sh: line 3: $'cd\r': command not found`:                                                            {codes.WindowsLineEnds, map[string]string{"program": "cd", "file": "./a.sh"}},
		`./a.sh: line 3: $'\r': command not found`:                                                                            {codes.WindowsLineEnds, map[string]string{"file": "./a.sh"}},
		"bash: ./a.sh: /bin/bash^M: bad interpreter: No such file or directory":                                               {codes.WindowsLineEnds, map[string]string{"program": "/bin/bash", "file": "./a.sh"}},
		"bash: ./a.py: /opt/py: bad interpreter: No such file or directory":                                                   {codes.ProgramMissing, map[string]string{"program": "/opt/py"}},
		"/bin/sh: 1: trian.py: not found":                                                                                     {codes.ProgramMissing, map[string]string{"program": "trian.py"}},
		"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.":                                             {codes.GPUOutOfMemory, map[string]string{"size": "2.00 GiB"}},
		"jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 17179869184 bytes.": {codes.GPUOutOfMemory, map[string]string{"size": "17179869184 bytes"}},
		"XlaRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.0GiB (2147483648B) on device ordinal 0":        {codes.GPUOutOfMemory, map[string]string{"size": "2.0GiB"}},
		"OOM when allocating tensor with shape[64,56] and type float on /job:localhost/replica:0/task:0/device:GPU:0":         {codes.GPUOutOfMemory, map[string]string{}},
		"OOM when allocating tensor with shape[64,56] and type float on /job:localhost/replica:0/task:0/device:CPU:0":         {},
		"RuntimeError: CUDA error: out of memory":                                                                             {codes.GPUOutOfMemory, map[string]string{}},
		"RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`":                            {codes.GPUOutOfMemory, map[string]string{}},
		"Cuda failure 2 'out of memory'":                                                                                      {codes.GPUOutOfMemory, map[string]string{}},
		"Call to ibv_reg_mr failed with error Cannot allocate memory":                                                         {codes.LockedMemoryLimit, map[string]string{}},
		"Call to connect to 10.0.0.5<43211> failed : Connection timed out":                                                    {codes.WrongInterface, map[string]string{}},
		"Error while creating shared memory segment /dev/shm/nccl-ZqZx0I (size 9637888), error: No space left on device (28)": {codes.NCCLSystemError, map[string]string{}},
		"[2]PETSC ERROR: Caught signal number 11 SEGV: Segmentation Violation, probably memory access out of range":           {codes.SegmentationFault, map[string]string{"rank": "2"}},
		"forrtl: severe (174): SIGSEGV, segmentation fault occurred":                                                          {codes.SegmentationFault, map[string]string{}},
		"RuntimeError: NCCL error: unhandled system error":                                                                    {codes.NCCLSystemError, map[string]string{}},
		"epoch 1 loss 0.5": {},
	} {
		for _, kind := range mpi.Implementations {
			var code codes.Code
			var figures map[string]string
			for _, symptom := range implementation.For(kind).Symptoms() {
				if got, found := symptom.Match(line); found {
					code, figures = symptom.Code, got
					break
				}
			}
			if diff := cmp.Diff(want.figures, figures); code != want.code || diff != "" {
				t.Errorf("%s: %q shows %q (-want +got)\n%s", kind, line, code, diff)
			}
		}
	}
}

// TestFiguresOfLaterLines: those that are known stay.
func TestFiguresOfLaterLines(t *testing.T) {
	t.Parallel()
	more := 0
	for _, kind := range mpi.Implementations {
		for _, symptom := range implementation.For(kind).Symptoms() {
			for _, pattern := range symptom.More {
				more++
				known := map[string]string{}
				for _, name := range pattern.SubexpNames() {
					known[name] = "known"
				}
				before := len(known)
				symptom.Add(known, "a line that tells nothing")
				for name, value := range known {
					if value != "known" || len(known) != before {
						t.Errorf("%s has changed to %q", name, value)
					}
				}
			}
		}
	}
	if more == 0 {
		t.Error("no symptom has figures on later lines")
	}
}

// TestDefinitionsOfSymptoms: the definition that a symptom names is one of its code, and only whole messages need another message.
func TestDefinitionsOfSymptoms(t *testing.T) {
	t.Parallel()
	for _, kind := range mpi.Implementations {
		for _, symptom := range implementation.For(kind).Symptoms() {
			if symptom.As != nil && symptom.As.Code != symptom.Code {
				t.Errorf("%s: %q is defined as %s", symptom.Code, symptom.Text, symptom.As.Code)
			}
			if symptom.Also != nil && !symptom.Whole {
				t.Errorf("%s: %q needs another message, but matches a line", symptom.Code, symptom.Text)
			}
		}
	}
}
