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
