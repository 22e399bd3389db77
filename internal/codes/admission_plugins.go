package codes

import "opendatahub.io/mpijob/api/v1alpha1"

// notAdmitted returns the definition of ObjectRefused for pods that an admission plugin of Kubernetes rejects.
func notAdmitted(reason string, remedies ...v1alpha1.Remedy) Entry {
	return Entry{
		Code: ObjectRefused, Phase: v1alpha1.PhasePending, Severity: v1alpha1.SeverityError, Traits: BlocksPods,
		Summary: "The API server rejects pods of the job: " + reason + ".", Remedies: remedies,
	}
}

// seeRanges shows the LimitRanges of a namespace.
var seeRanges = v1alpha1.Remedy{Text: "See what the LimitRanges of the namespace allow.", Action: "kubectl -n {namespace} describe limitranges"}

// These are the definitions of ObjectRefused for what the admission plugins of Kubernetes report of pods. Those with a name may use name; those
// of LimitRanges resource, unit (what is limited, such as Container), most (the limit of the LimitRange), asked (what the job has) and why
// (request or limit).
var (
	ServiceAccountMissing = notAdmitted("service account {name} does not exist in namespace {namespace}",
		v1alpha1.Remedy{Text: "Create it. The pods are then created automatically.", Action: "kubectl -n {namespace} create serviceaccount {name}"},
		v1alpha1.Remedy{Text: "Or correct or remove the name in the job. MPI needs no service account.", Action: "{field}.spec.serviceAccountName"},
	)
	PriorityClassMissing = notAdmitted("PriorityClass {name} does not exist",
		v1alpha1.Remedy{Text: "Correct or remove the name in the job.", Action: "{field}.spec.priorityClassName"},
		v1alpha1.Remedy{Text: "See the classes that exist. If you may not list them, ask the cluster administrator.", Action: "kubectl get priorityclasses"},
	)
	RuntimeClassMissing = notAdmitted("RuntimeClass {name} does not exist",
		v1alpha1.Remedy{Text: "Correct or remove the name in the job. Without it, the nodes' default runtime starts the containers, on many clusters also those with GPUs.", Action: "{field}.spec.runtimeClassName"},
		v1alpha1.Remedy{Text: "See the classes that exist.", Action: "kubectl get runtimeclasses"},
	)
	RuntimeClassElsewhere = notAdmitted("the nodes of their RuntimeClass have another value of label {name} than their nodeSelector requires",
		v1alpha1.Remedy{Text: "Remove the label from the nodeSelector, or use another RuntimeClass.", Action: "{field}.spec.nodeSelector"},
	)
	AboveLimitRange = notAdmitted("a LimitRange of namespace {namespace} allows at most {most} of {resource} per {unit}, and their {why} is {asked}",
		v1alpha1.Remedy{Text: "Request at most {most}.", Action: "{field}.spec.containers[0].resources"}, seeRanges,
	)
	BelowLimitRange = notAdmitted("a LimitRange of namespace {namespace} requires at least {most} of {resource} per {unit}, and their {why} is {asked}",
		v1alpha1.Remedy{Text: "Request at least {most}.", Action: "{field}.spec.containers[0].resources"}, seeRanges,
	)
	WithoutResources = notAdmitted("a LimitRange of namespace {namespace} requires a {why} for {resource} per {unit}, and they have none",
		v1alpha1.Remedy{Text: "Set this {why} in both pod templates.", Action: "{field}.spec.containers[0].resources"}, seeRanges,
	)
	AboveRequestRatio = notAdmitted("a LimitRange of namespace {namespace} allows a limit of at most {most} times the request of {resource} per {unit}",
		v1alpha1.Remedy{Text: "Set the request nearer to the limit.", Action: "{field}.spec.containers[0].resources.requests"}, seeRanges,
	)
	QuotaNeedsResources = notAdmitted("quota {name} of namespace {namespace} requires that each container specifies {resource}",
		v1alpha1.Remedy{Text: "Set {resource} in both pod templates.", Action: "{field}.spec.containers[0].resources"},
		v1alpha1.Remedy{Text: "See the quota.", Action: describeQuota},
	)
	NamespaceSelectsNodes = notAdmitted("their nodeSelector contradicts that of namespace {namespace}",
		v1alpha1.Remedy{Text: "Remove the labels from the nodeSelector that the namespace sets itself.", Action: "{field}.spec.nodeSelector"},
		v1alpha1.Remedy{Text: "See its annotations.", Action: "kubectl get namespace {namespace} -o yaml"},
	)
	TolerationsNotAllowed = notAdmitted("namespace {namespace} does not allow their tolerations",
		v1alpha1.Remedy{Text: "Remove the tolerations, or ask the cluster administrator to allow them in this namespace.", Action: "{field}.spec.tolerations"},
	)
	SecretNotOfAccount = notAdmitted("service account {name} may only use the Secrets that it lists, and Secret {secret} is none of them",
		v1alpha1.Remedy{Text: "Use another service account, or ask who administers the namespace to add the Secret to this one.", Action: "{field}.spec.serviceAccountName"},
	)
	AffinityNotAllowed = notAdmitted("the cluster only allows anti-affinity by nodes (kubernetes.io/hostname)",
		v1alpha1.Remedy{Text: "Set topologyKey to kubernetes.io/hostname.", Action: "{field}.spec.affinity.podAntiAffinity"},
	)
)
