package mpi

// Labels on a job's report, by which it is found when the job is gone.
const (
	LabelReportJob  = Group + "/job-name"
	LabelReportKind = Group + "/job-kind"
)

// ReportName names the record of this very job: a later one of the same name has another.
func (j Job) ReportName() string {
	const most = 8
	return j.Name + "-" + string(j.UID[:min(len(j.UID), most)])
}
