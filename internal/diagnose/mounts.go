package diagnose

import (
	"regexp"
	"strings"

	"opendatahub.io/mpijob/internal/phrase"
)

// remoteMount is a mount of a file system of another machine that failed on a pod's node.
type remoteMount struct {
	// source is SERVER:/PATH as it was mounted; kind is its file system, such as nfs.
	source, kind string
	// why is what went wrong, and remedy what to do about it.
	why, remedy string
}

// mounting is the part of the kubelet's message, and of a CSI driver's, that has the arguments of mount(8).
var mounting = regexp.MustCompile(`Mounting arguments:.*?-t (nfs4?|cifs|ceph|lustre)\b(?: -o \S+)* (\S+) \S+`)

// mountTroubles are what mount(8) and mount.nfs(8) of util-linux and nfs-utils print (support/nfs and utils/mount of nfs-utils;
// sys-utils/mount.c of util-linux), the more specific first.
var mountTroubles = []struct {
	pattern     *regexp.Regexp
	why, remedy string
}{
	{
		regexp.MustCompile(`helper program|unknown filesystem type|[Nn]o such device`),
		"the node has no {kind} client.",
		"Ask the cluster administrator to install the {kind} client on the nodes (nfs-utils or nfs-common for NFS), or to name nodes that have it.",
	},
	{
		regexp.MustCompile(`access denied`),
		"the server denies access.",
		"Have the server export this path to the addresses of the nodes. Nodes mount volumes, pods do not. Check the path as well: some servers deny access to paths that they do not export.",
	},
	{
		regexp.MustCompile(`Failed to resolve server|Name or service not known|Temporary failure in name resolution|could not resolve`),
		"the node cannot resolve the server's name.",
		"Use an address, or a name in the DNS of the nodes. For a server in this cluster, use the cluster IP of its Service: nodes do not use the cluster's DNS.",
	},
	{
		regexp.MustCompile(`[Cc]onnection refused|portmap query failed|Program not registered|RPC: Unable to receive`),
		"the server refuses the connection.",
		"Check that the server runs and that the address is right. NFS 4 needs port 2049; NFS 3 also needs rpcbind (111) and mountd.",
	},
	{
		regexp.MustCompile(`[Tt]imed out|No route to host|Network is unreachable|Host is down`),
		"the server does not answer.",
		"Check the address, that the server runs, and that firewalls let the nodes reach it. NFS 4 needs port 2049. Policies of pods do not matter: nodes mount volumes.",
	},
	{
		regexp.MustCompile(`requested NFS version or transport protocol is not supported|Protocol not supported|incorrect mount option`),
		"the server does not support the version or the mount options.",
		"Set a version that the server supports in mountOptions of the PersistentVolume or its StorageClass, such as nfsvers=4.1.",
	},
	{
		regexp.MustCompile(`rpc\.statd is not running`),
		"the node cannot lock files of this server.",
		"Set the mount option nfsvers=4.1, which needs no rpc.statd, in mountOptions of the PersistentVolume or its StorageClass.",
	},
	{
		regexp.MustCompile(`Stale (?:NFS )?file handle`),
		"the server has replaced what it exported.",
		"Delete the pods, so that the volume is mounted again. If that does not help, ask who maintains the server to export it again.",
	},
	{
		regexp.MustCompile(`No such file or directory|does not exist`),
		"the server has no such path.",
		"Correct the path of the volume. With NFS 4, paths begin at the root of what the server exports (fsid=0), not at the root of its disk.",
	},
	{
		regexp.MustCompile(`Operation not permitted|Permission denied`),
		"the node is not permitted to mount it.",
		"Check the server's export and its credentials. An NFS server that accepts only ports below 1024 needs the export option insecure if the connections of nodes are translated (NAT).",
	},
}

// remoteMountIn reads a failed mount of another machine's file system from an event of the kubelet.
func remoteMountIn(message string) (remoteMount, bool) {
	found := mounting.FindStringSubmatch(message)
	if found == nil {
		return remoteMount{}, false
	}
	m := remoteMount{kind: strings.ToUpper(strings.TrimSuffix(found[1], "4")), source: phrase.Limit(found[2], 200)}
	_, output, printed := strings.Cut(message, "Output:")
	if !printed {
		return remoteMount{}, false
	}
	for _, trouble := range mountTroubles {
		if trouble.pattern.MatchString(output) {
			m.why, m.remedy = strings.ReplaceAll(trouble.why, "{kind}", m.kind), strings.ReplaceAll(trouble.remedy, "{kind}", m.kind)
			return m, true
		}
	}
	return remoteMount{}, false
}
