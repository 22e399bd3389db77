package mpi

import "strings"

// Labels on a job's report, by which it is found when the job is gone.
const (
	LabelReportJob  = Group + "/job-name"
	LabelReportKind = Group + "/job-kind"
)

// ReportName names the record of this very job: a later one of the same name has another. A job that is refused for
// its long name has a record, too, whose name is cut to the 253 characters that an object's has at most.
func (j Job) ReportName() string {
	const most, ofUID = 253, 8
	uid := string(j.UID[:min(len(j.UID), ofUID)])
	return shortened(j.Name, most-len(uid)-1) + "-" + uid
}

// ReportLabels are on the job's record. A label holds 63 characters at most.
func (j Job) ReportLabels() map[string]string {
	return map[string]string{LabelReportJob: shortened(j.Name, 63), LabelReportKind: j.Kind}
}

// shortened cuts a name to so many characters, where it may end.
func shortened(name string, most int) string {
	return strings.TrimRight(name[:min(len(name), most)], "-._")
}
