package diagnose

import (
	"strings"
	"testing"
)

// mountFailed is the kubelet's event of a mount that failed.
func mountFailed(arguments, output string) string {
	return `MountVolume.SetUp failed for volume "data" : mount failed: exit status 32` + "\nMounting command: mount\nMounting arguments: " + arguments +
		" /var/lib/kubelet/pods/0b6cb4f0/volumes/kubernetes.io~nfs/data\nOutput: " + output + "\n"
}

func TestRemoteMountIn(t *testing.T) {
	const nfs = "-t nfs nas.example.com:/data"
	for name, test := range map[string]struct {
		message, source, why string
	}{
		"no client": {
			mountFailed(nfs, "mount: /var/lib/kubelet/pods/0b6cb4f0/volumes/kubernetes.io~nfs/data: bad option; for several filesystems (e.g. nfs, cifs) you might need a /sbin/mount.<type> helper program."),
			"nas.example.com:/data", "the node has no NFS client.",
		},
		"no client, older":        {mountFailed(nfs, "mount: wrong fs type, bad option, bad superblock on nas:/data,\n       missing codepage or helper program, or other error"), "nas.example.com:/data", "the node has no NFS client."},
		"a kernel without NFS":    {mountFailed(nfs, "mount.nfs: No such device"), "nas.example.com:/data", "the node has no NFS client."},
		"denied":                  {mountFailed("-t nfs 10.0.0.9:/data", "mount.nfs: access denied by server while mounting 10.0.0.9:/data"), "10.0.0.9:/data", "the server denies access."},
		"no such path":            {mountFailed(nfs, "mount.nfs: mounting nas.example.com:/data failed, reason given by server: No such file or directory"), "nas.example.com:/data", "the server has no such path."},
		"refused":                 {mountFailed("-t nfs -o vers=4.1,hard 10.98.14.12:/claim", "mount.nfs: Connection refused"), "10.98.14.12:/claim", "the server refuses the connection."},
		"refused for unit's name": {mountFailed("--description=Kubernetes transient mount for /var/lib/kubelet --scope -- mount -t nfs 10.98.14.12:/claim", "Running scope as unit run-11.scope.\nmount.nfs: Connection refused"), "10.98.14.12:/claim", "the server refuses the connection."},
		"no portmapper":           {mountFailed(nfs, "mount.nfs: portmap query failed: RPC: Unable to receive - Connection refused"), "nas.example.com:/data", "the server refuses the connection."},
		"no answer":               {mountFailed("-t nfs4 nas.example.com:/data", "mount.nfs4: Connection timed out"), "nas.example.com:/data", "the server does not answer."},
		"no route":                {mountFailed(nfs, "mount.nfs: No route to host"), "nas.example.com:/data", "the server does not answer."},
		"no name":                 {mountFailed(nfs, "mount.nfs: Failed to resolve server nas.example.com: Name or service not known"), "nas.example.com:/data", "the node cannot resolve the server's name."},
		"another version":         {mountFailed(nfs, "mount.nfs: requested NFS version or transport protocol is not supported"), "nas.example.com:/data", "the server does not support the version or the mount options."},
		"locks":                   {mountFailed(nfs, "mount.nfs: rpc.statd is not running but is required for remote locking.\nmount.nfs: Either use '-o nolock' to keep locks local, or start statd."), "nas.example.com:/data", "the node cannot lock files of this server."},
		"stale":                   {mountFailed(nfs, "mount.nfs: Stale file handle"), "nas.example.com:/data", "the server has replaced what it exported."},
		"not permitted":           {mountFailed(nfs, "mount.nfs: Operation not permitted"), "nas.example.com:/data", "the node is not permitted to mount it."},
		"by a CSI driver": {
			`MountVolume.SetUp failed for volume "pv" : rpc error: code = Internal desc = mount failed: exit status 32` +
				"\nMounting command: mount\nMounting arguments: -t nfs -o nfsvers=4.1 nas:/share /var/lib/kubelet/pods/x/mount\nOutput: mount.nfs: Connection timed out\n",
			"nas:/share", "the server does not answer.",
		},
		"a Windows share":      {mountFailed("-t cifs -o username=x //nas/share", "mount error(13): Permission denied"), "//nas/share", "the node is not permitted to mount it."},
		"something else":       {mountFailed(nfs, "mount.nfs: Remote I/O error"), "", ""},
		"a disk":               {mountFailed("-t ext4 /dev/sdb", "mount: wrong fs type, bad option, bad superblock on /dev/sdb, missing codepage or helper program, or other error"), "", ""},
		"without an output":    {"Mounting arguments: -t nfs nas:/share /var/lib/kubelet", "", ""},
		"the name of a volume": {`MountVolume.SetUp failed for volume "nfs-Connection refused" : hostPath type check failed: /mnt is not a directory`, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, found := remoteMountIn(test.message)
			if found != (test.why != "") || got.why != test.why || found && (got.source != test.source || got.remedy == "" || strings.Contains(got.remedy, "{")) {
				t.Errorf("got %+v", got)
			}
		})
	}
}
