package cgroup_test

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"opendatahub.io/mpijob/internal/agent/cgroup"
)

// TestOwnedCores: a container owns its cores if the kubelet gave it as many as its Guaranteed pod asks for, and no others.
func TestOwnedCores(t *testing.T) {
	t.Parallel()
	const quota2, quota1 = "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "sys/fs/cgroup/cpu/cpu.cfs_period_us"
	version2 := map[string]string{
		"sys/devices/system/cpu/online": "0-15\n", "proc/self/cgroup": "0::/\n", "proc/self/status": "Name:\tmpi-agent\nCpus_allowed_list:\t2-3,10-11\nMems_allowed_list:\t0\n",
		"sys/fs/cgroup/cgroup.controllers": "cpuset cpu\n", "sys/fs/cgroup/cpuset.cpus.effective": "2-3,10-11\n", "sys/fs/cgroup/cpu.max": "400000 100000\n",
	}
	version1 := map[string]string{
		"sys/devices/system/cpu/online": "0-15\n", "proc/self/cpuset": "/\n", "proc/self/status": "Name:\tmpi-agent\nCpus_allowed_list:\t2-3,10-11\n",
		"sys/fs/cgroup/cpuset/cpuset.cpus": "2-3,10-11\n", quota2: "400000\n", quota1: "100000\n",
	}
	for name, test := range map[string]struct {
		from     map[string]string
		with     map[string]string
		expected int
		want     bool
		hidden   bool
	}{
		"version 2":                                {from: version2, expected: 4, want: true},
		"version 2 without a quota":                {from: version2, with: map[string]string{"sys/fs/cgroup/cpu.max": "max 100000\n"}, expected: 4, want: true},
		"version 2 without the limit's file":       {from: version2, with: map[string]string{"sys/fs/cgroup/cpu.max": ""}, expected: 4, want: true},
		"version 2 below the root":                 {from: version2, with: map[string]string{"proc/self/cgroup": "0::/job\n", "sys/fs/cgroup/job/cpuset.cpus.effective": "2-3,10-11\n"}, expected: 4, want: true},
		"version 2 outside the namespace":          {from: version2, with: map[string]string{"proc/self/cgroup": "0::/kubepods/pod1/c1\n"}, expected: 4, hidden: true},
		"version 1":                                {from: version1, expected: 4, want: true},
		"version 1 without a quota":                {from: version1, with: map[string]string{quota2: "-1\n"}, expected: 4, want: true},
		"version 1 without a namespace":            {from: version1, with: map[string]string{"proc/self/cpuset": "/kubepods/pod1/c1\n"}, expected: 4, hidden: true},
		"version 1 without a namespace, shared":    {from: version1, with: map[string]string{"proc/self/cpuset": "/kubepods/pod1/c1\n", "proc/self/status": "\nCpus_allowed_list:\t0-15\n"}, expected: 4},
		"not Guaranteed, or no whole CPUs":         {from: version2},
		"all CPUs of the machine":                  {from: version2, with: map[string]string{"sys/fs/cgroup/cpuset.cpus.effective": "0-15\n", "proc/self/status": "\nCpus_allowed_list:\t0-15\n"}, expected: 4},
		"as many CPUs as the machine has":          {from: version2, with: map[string]string{"sys/devices/system/cpu/online": "0-3\n"}, expected: 4},
		"a shared pool":                            {from: version2, with: map[string]string{"sys/fs/cgroup/cpuset.cpus.effective": "1-15\n", "proc/self/status": "\nCpus_allowed_list:\t1-15\n"}, expected: 4},
		"fewer CPUs":                               {from: version2, expected: 5},
		"another limit":                            {from: version2, with: map[string]string{"sys/fs/cgroup/cpu.max": "350000 100000\n"}, expected: 4},
		"a process that is bound":                  {from: version2, with: map[string]string{"proc/self/status": "\nCpus_allowed_list:\t2\n"}, expected: 4},
		"no cpuset":                                {from: version2, with: map[string]string{"sys/fs/cgroup/cpuset.cpus.effective": ""}, expected: 4, hidden: true},
		"an unknown number of CPUs in the machine": {from: version2, with: map[string]string{"sys/devices/system/cpu/online": ""}, expected: 4},
		"no files":                                 {expected: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, files := t.TempDir(), maps.Clone(test.from)
			if files == nil {
				files = map[string]string{}
			}
			maps.Copy(files, test.with)
			for path, text := range files {
				path = filepath.Join(root, path)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c := cgroup.ReadCores(root, test.expected); c.Owned() != test.want || c.Hidden() != test.hidden {
				t.Errorf("%+v: owned: want %t, hidden: %t", c, test.want, test.hidden)
			}
		})
	}
}
