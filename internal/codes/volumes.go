package codes

import "opendatahub.io/mpijob/api/v1alpha1"

var volumes = []Entry{
	{
		Code: MountFailed, Phase: v1alpha1.PhaseInitializing,
		Summary: "{who} cannot start: a volume cannot be mounted: {message}",
		Remedies: []v1alpha1.Remedy{
			{Text: "{first|Check the volume in the message, and its claim.}", Action: describePod},
			{Text: "Pods on several nodes can share a volume only with access mode ReadWriteMany.", Action: "kubectl -n {namespace} get pvc"},
		},
	},
}

// RemoteMountFailed is the definition of MountFailed for a file system of another machine, such as an NFS server.
var RemoteMountFailed = Entry{
	Code: MountFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: node {node} cannot mount {source}: {message}",
	Remedies: []v1alpha1.Remedy{
		{Text: "{first}"},
		{Text: "Read the message of mount in the pod's events.", Action: describePod},
	},
}

// HostPathMissing is the definition of MountFailed for a path that the pod's node does not have.
var HostPathMissing = Entry{
	Code: MountFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: hostPath {message} on node {node}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Use a PersistentVolumeClaim. A hostPath is a path of the node on which the pod happens to run.", Action: "{field}.spec.volumes"},
		{Text: "Or ask the cluster administrator to create the path on all nodes, or select the nodes that have it.", Action: "{field}.spec.nodeSelector"},
		{Text: "See the pod's conditions and events.", Action: describePod},
	},
}

// FolderNotCreated is the definition of ContainerCreateFailed for a folder of a volume (subPath) that the kubelet cannot create or open.
var FolderNotCreated = Entry{
	Code: ContainerCreateFailed, Phase: v1alpha1.PhaseInitializing,
	Summary: "{who} cannot start: {folder} cannot be created or opened on {volume}.",
	Remedies: []v1alpha1.Remedy{
		{Text: "Nodes create the folder of a subPath as root, and most NFS servers give root no rights (root_squash). Mount the whole volume, without subPath or --output-dir, and have the program create its folder.", Action: "{field}.spec.containers[0].volumeMounts"},
		{Text: "Or create the folder as the user of the pods, for example in a job that mounts the whole volume; this job then continues. All users must be able to open the folders above (mode 755)."},
		{Text: "Or ask who maintains the NFS server to open the exported folder to all users, or to export it with no_root_squash. On other storage, check that the volume can be written to and is not full.", Action: describePod},
	},
}
