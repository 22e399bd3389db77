package mpi

import "strings"

// ReportName returns the name of the job's report. It contains part of the UID, so that a later job of the same name
// has another report. The name is truncated to 253 characters, because even a job that is rejected for its long name
// has a report.
func (j Job) ReportName() string {
	const most, ofUID = 253, 8
	uid := string(j.UID[:min(len(j.UID), ofUID)])
	return truncateName(j.Name, most-len(uid)-1) + "-" + uid
}

// ReportLabels returns the labels of the job's report. Values are truncated to 63 characters.
func (j Job) ReportLabels() map[string]string {
	return map[string]string{LabelReportJob: truncateName(j.Name, 63), LabelReportKind: j.Kind}
}

// truncateName truncates a name to a length, and removes trailing characters that a name cannot end with.
func truncateName(name string, most int) string {
	return strings.TrimRight(name[:min(len(name), most)], "-._")
}
