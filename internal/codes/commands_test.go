package codes_test

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/codes"
	"opendatahub.io/mpijob/internal/mpitest"
	"opendatahub.io/mpijob/internal/phrase"
)

// special are the definitions for special cases of a code.
var special = []codes.Entry{
	codes.DaemonEnded, codes.HostfileNotRead, codes.CommandInOneWord, codes.CommandNotStarted, codes.InitContainerFailed, codes.InitContainerCrashes,
	codes.RemoteMountFailed, codes.HostPathMissing, codes.FolderNotCreated, codes.VolumeDenied, codes.RefusedToController, codes.PortInUseInPod, codes.SandboxFailed, codes.NodeNetworkDown, codes.DevicesNotPrepared, codes.PathReplaced, codes.ProgramHidden, codes.NumberAsProgram, codes.ValueAsProgram, codes.InitProgramMissing, codes.OtherMPI, codes.OtherMPIThanRuntime, codes.OtherMPIRefused, codes.OtherMPIRefusedByRuntime, codes.OptionsInOneWord, codes.BindingConflict, codes.ReferenceInCommand, codes.LauncherMessage, codes.PatchOfNoJob, codes.NoServerOnWorkers, codes.ProgramNotOnVolume, codes.ProgramOnlyInLauncher, codes.CommandWithNUL, codes.HookFailed, codes.ClaimsMissing,
	codes.ProgramMissingInLauncher, codes.RankNotStarted, codes.NothingStarted, codes.MoreMemoryThanNodes, codes.EndedBeforeRanks, codes.EndedAfterRanks, codes.ScriptStopped, codes.CommandContinues, codes.ChildFailed, codes.EarlierRunFailed, codes.PartEnded, codes.InterpreterMissing, codes.ServerMissing,
	codes.MappingConflict, codes.HostNotInJob, codes.RankfileInvalid, codes.HostByPlace, codes.RankByPlace, codes.PlaceBeyondHosts, codes.PlaceInvalid, codes.EmptyHostsMissing, codes.ProgramNotNamed, codes.WorkingDirMissing, codes.ScriptInManyWords, codes.OptionOfOther, codes.VersionsDiffer, codes.SystemLimit,
	codes.NoTemporaryDir, codes.TemporaryPathTooLong, codes.HostfileInvalid, codes.BindingImpossible, codes.InterfaceMissing, codes.InterfaceNotSelected, codes.ComponentMissing,
	codes.ProviderMissing, codes.UCXTransportMissing, codes.PeersUnreachable, codes.ProgramNotAccessible, codes.TensorsMissing, codes.ProbeNotExecuted, codes.Throttling, codes.GPUStraggler, codes.HelperOfOtherMPI, codes.BatchLauncher, codes.ModeWithoutExecution,
	codes.ServiceAccountMissing, codes.PriorityClassMissing, codes.RuntimeClassMissing, codes.RuntimeClassElsewhere, codes.AboveLimitRange, codes.BelowLimitRange,
	codes.WithoutResources, codes.AboveRequestRatio, codes.QuotaNeedsResources, codes.NamespaceSelectsNodes, codes.TolerationsNotAllowed, codes.SecretNotOfAccount,
	codes.AffinityNotAllowed, codes.UndefinedInScript, codes.WaitsForStorage, codes.BatchCommand, codes.ModulesMissing, codes.MPIRunMissing, codes.RequestTimeSkewed,
	codes.GPUTakenAtStart, codes.NCCLWithoutGPU, codes.NCCLSharedMemory, codes.FortranCrash, codes.ThreadsNotStarted,
	codes.NodeWithoutDriver, codes.DriverTooOld, codes.SeccompProfileMissing, codes.DeviceGone, codes.DriverLibraryMissing, codes.OtherMPILibrary, codes.CUDALibraryMissing, codes.InitializerFailed,
}

// allEntries are the definitions of all codes, with special cases and those of programs' own errors.
func allEntries() []codes.Entry {
	all := append(codes.Entries(), special...)
	for _, of := range slices.Concat(codes.OwnErrors, codes.LauncherErrors) {
		entry := codes.Lookup(codes.ApplicationFailed)
		entry.Remedies = append(slices.Clone(of.Remedies), of.OnlyInLauncher...)
		all = append(all, entry)
	}
	for _, remedies := range [][]v1alpha1.Remedy{codes.KnownError, codes.ObjectAsBuffer, codes.MissingLocale, codes.LocaleOfEnvironment, codes.LocalAddress, codes.LocalAddressOfRank, codes.BinaryData, {codes.OverflowHint}, codes.OwnLock, codes.MisspelledOption, codes.BufferChanged, codes.BufferRead, codes.NumbersWarned, codes.NoticeThread, codes.NoticeTask, codes.NoticeProcess, codes.MessageOfMPI, codes.OneProcess, codes.FullVolume, codes.ShadowedModule, codes.ShadowedStandard, codes.NewerStandard, codes.ReferenceInArguments, codes.MisspelledOfMPI, codes.FewDevices, codes.InitAwaited, codes.ImageWithoutTag, codes.InvalidOperation, codes.NotFiniteFigure, codes.MisspelledVariable, codes.ModuleVersion, codes.CommandOfProgram, codes.UnexpandedReference, codes.FolderOnlyInLauncher, codes.FolderOfOnePod, codes.WaitsOnPurpose, codes.CapabilityDenied, codes.PrivilegeDenied, codes.VariableOnlyInLauncher, codes.UnreadableObject, codes.IsolatedNetwork, codes.WrongSubPath, codes.RenamedByAnother, codes.MissingOnVolume, codes.UnsetVariable, codes.VariableOfCommand, codes.VariableOnlyInWorkers, codes.FilledBySidecar, codes.FilledByContainer, codes.ChildProcess, codes.NameOfProxy, codes.CtypesCrash, codes.UndeclaredPointer, codes.CallByCtypes, codes.LockHeld, codes.LockAwaited, codes.AllReceive, codes.HashedTag, codes.SeparateFolder, codes.ReferredTooEarly, codes.ReducedToRoot, codes.MissingKey, codes.MountedElsewhere, codes.ReadOnlyVolume, codes.ReadOnlyMount, codes.FileNotExecutable, codes.RefusedConnection, codes.OwnDNSPolicy, codes.LostInPipe, codes.SleepsAlone, codes.CollectivesApart, codes.EndedBeforeOthers, codes.ShellWaits, codes.NoAnswerFailed.Remedies, codes.ThreadsLeft, codes.FinishedBefore, codes.PythonElsewhere, codes.GPUNotRequested, codes.IsolatedLicense, codes.SSHDPort, {codes.OwnLimit}, {codes.BindingOption}, codes.Lookup(codes.BusError).WithUnlimitedShm().Remedies, {codes.InitializerOutOfMemory}, {codes.MemoryVolume}, {codes.SilentPython}, {codes.OwnSetting}, {codes.SetOnWorkers}} {
		entry := codes.Lookup(codes.ApplicationFailed)
		entry.Remedies = remedies
		all = append(all, entry)
	}
	return all
}

// TestValuesAreWordsOfCommands: whatever a value contains, a shell splits the action of a remedy into the words that its author
// wrote, with the value as a part of one of them, and executes nothing in it.
func TestValuesAreWordsOfCommands(t *testing.T) {
	t.Parallel()
	placeholder := regexp.MustCompile(`\{([a-zA-Z]+)(?:\|[^{}]*)?\}`)
	tested := map[string]bool{}
	for _, entry := range allEntries() {
		for _, remedy := range entry.Remedies {
			if names := placeholder.FindAllStringSubmatch(remedy.Action, -1); codes.IsCommand(remedy.Action) && len(names) > 0 && !tested[remedy.Action] {
				tested[remedy.Action] = true
				t.Run(entry.Code+" "+remedy.Action, func(t *testing.T) {
					t.Parallel()
					for _, name := range names {
						fillWithHostile(t, remedy.Action, name[1])
					}
				})
			}
		}
	}
	if len(tested) < 20 {
		t.Errorf("%d actions are commands with placeholders", len(tested))
	}
}

// fillWithHostile fills one placeholder of an action with hostile values, and all others with plain ones.
func fillWithHostile(t *testing.T, action, name string) {
	t.Helper()
	const token = "token"
	plain := map[string]string{name: token}
	for _, other := range known {
		if other != name {
			plain[other] = "plain"
		}
	}
	commands := []string{codes.FillRemedy(v1alpha1.Remedy{Action: action}, plain).Action}
	for _, value := range mpitest.Hostile {
		values := maps.Clone(plain)
		values[name] = value
		commands = append(commands, codes.FillRemedy(v1alpha1.Remedy{Action: action}, values).Action)
	}
	called := mpitest.RunInShell(t, commands...)
	want := called[0]
	for i, value := range mpitest.Hostile {
		filled, got := commands[i+1], called[i+1]
		if len(got) != len(want) {
			t.Errorf("%s calls %v, want %v", filled, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
		}
		for program, words := range want {
			words = slices.Clone(words)
			if phrase.OneLine(value) == value {
				for i := range words {
					words[i] = strings.ReplaceAll(words[i], token, value)
				}
				if !slices.Equal(words, got[program]) {
					t.Errorf("%s calls %s with %q, want %q", filled, program, got[program], words)
				}
			} else if len(words) != len(got[program]) || strings.Contains(filled, value) {
				t.Errorf("%s calls %s with %q, want a placeholder for the reader", filled, program, got[program])
			}
		}
	}
}

// TestFillAction: a value is quoted in a command only, and what cannot be shown leaves a placeholder for the reader.
func TestFillAction(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ action, value, want string }{
		{"kubectl exec {hostPod}", "pi-worker-0", "kubectl exec pi-worker-0"},
		{"kubectl exec {hostPod}", "a b", "kubectl exec 'a b'"},
		{"kubectl exec {hostPod}", "a\nb", "kubectl exec HOST-POD"},
		{"kubectl exec {hostPod|POD}", "a\nb", "kubectl exec POD"},
		{"kubectl exec {hostPod}", strings.Repeat("a", 254), "kubectl exec HOST-POD"},
		{"kubectl exec {hostPod|POD}", "", "kubectl exec POD"},
		{"command: [sh, {hostPod}]", `"a b"`, `command: [sh, "a b"]`},
		{"{hostPod}", "kubectl get 'a b'", "kubectl get 'a b'"},
	} {
		if got := codes.FillAction(test.action, map[string]string{"hostPod": test.value}); got != test.want {
			t.Errorf("%s, want %s", got, test.want)
		}
	}
}
