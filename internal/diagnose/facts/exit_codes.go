package facts

import (
	"opendatahub.io/mpijob/internal/codes"
)

// CodeOfSignal returns the code for the end of a process by a signal; "" if there is none.
func CodeOfSignal(signal int32) codes.Code {
	switch signal {
	case 4:
		return codes.IllegalInstruction
	case 6:
		return codes.Aborted
	case 7:
		return codes.BusError
	case 9:
		return codes.Killed
	case 11:
		return codes.SegmentationFault
	case 15:
		return codes.Terminated
	}
	return ""
}

// CodeOfCrash returns the code of a crash that a rank's shell passed on as its own exit code, or "".
func CodeOfCrash(exitCode int32) codes.Code {
	switch signal := exitCode - 128; signal {
	case 4, 6, 7, 11:
		return CodeOfSignal(signal)
	}
	return ""
}

// Terminated and KilledCode are the exit codes of what ends by SIGTERM and by SIGKILL.
const (
	Terminated = 128 + 15
	KilledCode = 128 + 9
)
