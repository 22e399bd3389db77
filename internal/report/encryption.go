package report

import (
	"opendatahub.io/mpijob/api/v1alpha1"
	"opendatahub.io/mpijob/internal/jobstate"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// maxEncryptionMessage is the limit of the message in v1alpha1.Encryption.
const maxEncryptionMessage = 256

// NeedsEncryption reports whether it is to be looked up what encrypts the traffic between a job's pods: when they start to run, again if
// that was unknown, and for a job that ended before it was seen running.
func NeedsEncryption(job mpi.Job, outcome jobstate.Outcome, previous *v1alpha1.JobReport) bool {
	if job.Pods() < 2 {
		return false
	}
	var before v1alpha1.JobReportStatus
	if previous != nil {
		before = previous.Status
	}
	isKnown := before.Encryption != nil && before.Encryption.State != v1alpha1.EncryptionUnknown
	switch outcome.Phase {
	case v1alpha1.PhaseRunning:
		return !isKnown || before.Phase != v1alpha1.PhaseRunning
	case v1alpha1.PhaseSucceeded, v1alpha1.PhaseFailed:
		return !isKnown && (before.Phase == v1alpha1.PhaseInitializing || before.Phase == v1alpha1.PhaseRunning)
	}
	return false
}

// encryption returns how the traffic between the job's pods is encrypted; as before if it was not looked up now.
func (m maker) encryption() *v1alpha1.Encryption {
	found := m.evidence.Encryption
	if found == nil {
		return m.before.Encryption
	}
	if len(found.By) == 0 && found.Err != nil {
		return &v1alpha1.Encryption{State: v1alpha1.EncryptionUnknown, Message: phrase.Limit(phrase.OneLine(found.Err.Error()), maxEncryptionMessage)}
	}
	if len(found.By) == 0 {
		return &v1alpha1.Encryption{State: v1alpha1.NotEncrypted, Message: "no encryption of the traffic between pods was found"}
	}
	if past := m.job.Plaintexts(); len(past) > 0 {
		return &v1alpha1.Encryption{State: v1alpha1.NotEncrypted, By: found.By, Message: phrase.Limit("pods use "+past[0].What+", which no network plug-in encrypts", maxEncryptionMessage)}
	}
	return &v1alpha1.Encryption{State: v1alpha1.Encrypted, By: found.By}
}
