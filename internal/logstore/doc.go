// Package logstore keeps the complete logs of jobs' pods in an S3 bucket of the administrator: it reads them from the kubelets, masks and
// compresses them, writes them as objects of a bounded size, tells the job's report where they are, and deletes them after their retention.
//
// Users never get the credentials of the bucket. They read the logs by signed addresses, which a job's report contains.
package logstore
