package cgroup

import (
	"bufio"
	"reflect"
	"strings"
	"testing"
)

func TestParseMountInfo(t *testing.T) {
	tests := map[string]struct {
		mounts     string
		want       []hierarchy
		membership string
	}{
		"v1 with an empty v2 beside it": {
			mounts: `22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:25 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:26 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset
32 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
33 30 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
34 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
`,
			want: []hierarchy{
				{path: "/sys/fs/cgroup/cpuset", controllers: []string{"rw", "cpuset"}},
				{path: "/sys/fs/cgroup/memory", controllers: []string{"rw", "memory"}},
				{path: "/sys/fs/cgroup/pids", controllers: []string{"rw", "pids"}},
				{path: "/sys/fs/cgroup/unified", v2: true},
			},
			membership: "/sys/fs/cgroup/pids",
		},
		"v2": {
			mounts:     "30 22 0:25 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
			want:       []hierarchy{{path: "/sys/fs/cgroup", v2: true}},
			membership: "/sys/fs/cgroup",
		},
		"one hierarchy mounted twice": {
			mounts: `31 30 0:26 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
35 30 0:26 / /mnt/cpu rw - cgroup cgroup rw,cpu,cpuacct
`,
			want:       []hierarchy{{path: "/sys/fs/cgroup/cpu,cpuacct", controllers: []string{"rw", "cpu", "cpuacct"}}},
			membership: "/sys/fs/cgroup/cpu,cpuacct",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseMountInfo(bufio.NewScanner(strings.NewReader(test.mounts)))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v\nwant %+v", got, test.want)
			}
			if at := membership(got).path; at != test.membership {
				t.Errorf("processes are looked for in %s, want %s", at, test.membership)
			}
		})
	}
}
