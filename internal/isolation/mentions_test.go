package isolation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"opendatahub.io/mpijob/internal/isolation"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/mpitest"
)

// TestMentions finds what a policy certainly denies, and nothing else.
func TestMentions(t *testing.T) {
	tests := map[string]struct {
		text string
		// want are the entries that would allow what is denied.
		want []string
	}{
		"a service of another project":         {text: "http://mlflow.tools.svc:5000", want: []string{"namespace/tools:5000"}},
		"a database":                           {text: "postgresql://me:hunter2@db.example.com:5432/x", want: []string{"5432"}},
		"in a script":                          {text: "set -e\ncurl -d x 'http://api.example.com:8080/run' && train --db=tcp://db.example.com:5432/x", want: []string{"8080", "5432"}},
		"without a scheme":                     {text: "--tracking mlflow.tools.svc.cluster.local:5000 --at=203.0.113.7:9000", want: []string{"namespace/tools:5000", "203.0.113.7/32:9000"}},
		"HTTP":                                 {text: "http://www.example.com/data", want: []string{"80"}},
		"the metadata of the cloud":            {text: "curl http://169.254.169.254/latest", want: []string{"169.254.169.254/32:80"}},
		"HTTPS":                                {text: "https://example.com https://mlflow.tools.svc https://10.0.0.1:6443"},
		"it may be a Service or a pod":         {text: "http://mlflow.tools:5000"},
		"the cluster's":                        {text: "http://etcd.kube-system:2000", want: []string{"namespace/kube-system:2000"}},
		"its own project":                      {text: "http://mlflow:5000 http://mlflow.team:5000 http://mlflow.team.svc:5000 pi-launcher.pi.team.svc:9999"},
		"itself":                               {text: "http://localhost:5000 tcp://127.0.0.1:1 tcp://[::1]:1 tcp://0.0.0.0:29500 tcp://[::]:29500"},
		"pods behind a Service":                {text: "tcp://pi-worker-0.pi:29500"},
		"a private address":                    {text: "http://10.1.2.3:9000 http://[fd00::7]:9000 http://100.64.0.1:80"},
		"no host":                              {text: "s3://bucket/key file:///etc/x hf://org/model oci://a.b.c/d"},
		"variables":                            {text: "http://$HOST:5000 http://$(HOST):5000 http://${HOST}:5000 http://{host}:5000 http://<host>:5000"},
		"lines, slots, times and versions":     {text: "main.py:120 -H a.b.c:8,node1.cluster.example.com:64 12:30:45 v1.2.3:8080 image.tar.gz:x a.b.c:10000000"},
		"an administrator allows the port":     {text: "http://a.example.com:7000 http://mlflow.tools.svc:7000 http://203.0.113.7:7000"},
		"an administrator allows a namespace":  {text: "http://x.open.svc:1234 http://x.some.svc:9000 http://x.some.svc:9001"},
		"an administrator allows an address":   {text: "http://198.51.100.7:8000 http://198.51.100.7:8001 http://203.0.113.7:8000", want: []string{"198.51.100.7/32:8001", "203.0.113.7/32:8000"}},
		"a name that may be of that address":   {text: "http://x.example.com:8000"},
		"the same twice":                       {text: "http://a.example.com:81 http://a.example.com:81/x", want: []string{"81"}},
		"an address behind a name of the node": {text: "http://2852039166/ http://0xa9fea9fe/"},
	}
	allowed, errs := isolation.ParseEgress("7000,namespace/open,namespace/some:9000,198.51.100.0/24:8000,514/udp")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(1, func(j *mpi.Job) {
				j.Launcher.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "TO", Value: test.text}}
			})
			var got []string
			for _, mention := range isolation.Mentions(job, home) {
				if entry, denied := mention.CertainlyDenied(home, allowed); denied {
					got = append(got, entry.String())
					text := mention.Warning(home, entry)
					if !strings.HasPrefix(text, "variable TO of the launcher: the job's NetworkPolicy denies connections to "+mention.String()) || strings.Contains(text, "hunter2") {
						t.Errorf("the warning is %q", text)
					}
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("what is denied differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMentionsOfPods(t *testing.T) {
	job := mpitest.Job(1, func(j *mpi.Job) {
		j.Launcher.Template.Spec.Containers[0].Command = []string{"curl", "http://a.example.com:81"}
		j.Workers.Template.Spec.Containers[0].Args = []string{"http://b.example.com:82"}
		j.Workers.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "http://\n", Value: "http://c.example.com:83"}}
		j.Workers.Template.Spec.InitContainers = []corev1.Container{{Env: []corev1.EnvVar{{Name: "D", Value: "http://d.example.com:84"}}}}
	})
	where := func() (got []string) {
		for _, mention := range isolation.Mentions(job, home) {
			got = append(got, fmt.Sprint(mention.Where, " ", mention))
		}
		return got
	}
	want := []string{"the command of the launcher a.example.com:81", "a variable of the worker c.example.com:83", "the command of the worker b.example.com:82", "variable D of the worker d.example.com:84"}
	if diff := cmp.Diff(want, where()); diff != "" {
		t.Errorf("the mentions differ (-want +got):\n%s", diff)
	}
	job.Workers.Template.Spec.HostNetwork = true
	if diff := cmp.Diff(want[:1], where()); diff != "" {
		t.Errorf("the mentions without those of the host network differ (-want +got):\n%s", diff)
	}
}

// TestProgramsThatUseHTTP: programs whose arguments do not show it are found in scripts and in lists of words.
func TestProgramsThatUseHTTP(t *testing.T) {
	tests := map[string]struct {
		command []string
		want    []string
	}{
		"apt-get in a script":          {[]string{"sh", "-c", "set -e; apt-get -qq -y update && apt-get install -y libfoo\nmpirun train"}, []string{"80"}},
		"apt as words":                 {[]string{"/usr/bin/apt", "-y", "install", "libfoo"}, []string{"80"}},
		"curl without a scheme":        {[]string{"sh", "-c", "curl -s data.example.com/x; curl data.example.com/set.tar | tar x"}, []string{"80"}},
		"wget of another port":         {[]string{"wget", "data.example.com:8080/x"}, []string{"8080"}},
		"curl with options":            {[]string{"sh", "-c", "curl -sSLO data.example.com/x"}, []string{"80"}},
		"curl with long options":       {[]string{"curl", "--fail", "--location", "--retry", "3", "data.example.com/x"}, []string{"80"}},
		"curl with a file first":       {[]string{"curl", "-Lo", "a.b.tar/y", "data.example.com:81/x"}, []string{"81"}},
		"wget with an option":          {[]string{"wget", "-q", "data.example.com/x"}, []string{"80"}},
		"wget with a folder":           {[]string{"wget", "-nv", "-P", "a.b.tar/y", "-P/tmp", "data.example.com/x"}, []string{"80"}},
		"unknown options":              {[]string{"curl", "--proxy-header", "a.b.example/y", "--url-query=x", "https://data.example.com/x"}, nil},
		"git's own protocol":           {[]string{"git", "clone", "git://host.example.com/x"}, []string{"9418"}},
		"rsync":                        {[]string{"rsync", "-a", "rsync://host.example.com/data/", "/data"}, []string{"873"}},
		"a database without a port":    {[]string{"train", "--db=postgresql://db.example.com/runs"}, []string{"5432"}},
		"yum":                          {[]string{"sh", "-c", "yum install -y libfoo"}, []string{"80"}},
		"dnf with options":             {[]string{"sh", "-c", "dnf -y --nodocs install libfoo && dnf clean all"}, []string{"80"}},
		"dnf that only cleans":         {[]string{"dnf", "clean", "all"}, nil},
		"curl by HTTPS":                {[]string{"curl", "https://data.example.com/x"}, nil},
		"a file of curl":               {[]string{"curl", "-o", "a.b.tar/x", "https://data.example.com/x"}, nil},
		"other words":                  {[]string{"sh", "-c", "echo adapt-get update; python apt.py install; ls apt-get; capt install"}, nil},
		"apt that only lists packages": {[]string{"apt", "list"}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			job := mpitest.Job(1, func(j *mpi.Job) { j.Launcher.Template.Spec.Containers[0].Command = test.command })
			var got []string
			for _, mention := range isolation.Mentions(job, home) {
				if entry, denied := mention.CertainlyDenied(home, nil); denied {
					got = append(got, entry.String())
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("the denied ports differ (-want +got):\n%s", diff)
			}
		})
	}
	job := mpitest.Job(1, func(j *mpi.Job) {
		j.Workers.Template.Spec.InitContainers = []corev1.Container{{Command: []string{"apt-get", "install", "x"}}}
	})
	found := isolation.Mentions(job, home)
	if len(found) != 1 {
		t.Fatalf("found %+v", found)
	}
	entry, _ := found[0].CertainlyDenied(home, nil)
	const want = "the command of the worker: the job's NetworkPolicy denies HTTP (port 80), which apt-get uses unless the image's sources are https; " +
		"to use it, ask an administrator to add 80 to the annotation mpi.opendatahub.io/allow-egress of Namespace team"
	if got := found[0].Warning(home, entry); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	open, _ := isolation.ParseEgress("80")
	if _, denied := found[0].CertainlyDenied(home, open); denied {
		t.Error("it is denied although an administrator allows port 80")
	}
}

// TestMentionsAreBounded: a job of 50 MiB that consists of destinations is searched within the time of a test.
func TestMentionsAreBounded(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("a.", 1<<20), strings.Repeat("a.b.c:", 1<<18), strings.Repeat("http://", 1<<18), strings.Repeat("a", 1<<20) + "://x:1",
		strings.Repeat(" a.b.example.com:9000", 1<<16), strings.Repeat(" http://x.example.com:9000", 1<<16),
	} {
		job := mpitest.Job(1, func(j *mpi.Job) {
			for range 50 {
				j.Launcher.Template.Spec.Containers[0].Args = append(j.Launcher.Template.Spec.Containers[0].Args, text)
			}
		})
		if found := isolation.Mentions(job, home); len(found) > 64 {
			t.Errorf("%d destinations in %.20s…", len(found), text)
		}
	}
}
