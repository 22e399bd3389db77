package operator

// The permissions of the operator: `make generate` writes config/rbac from these markers. They are the least that works.
// Secrets are listed and watched as metadata only, which RBAC cannot distinguish from whole Secrets.
//
// +kubebuilder:rbac:groups=kubeflow.org,resources=mpijobs,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=kubeflow.org,resources=mpijobs/status,verbs=update
// +kubebuilder:rbac:groups=kubeflow.org,resources=mpijobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=services;configmaps;secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=networkpolicies,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=trainer.kubeflow.org,resources=trainjobs/finalizers,verbs=update
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// +kubebuilder:rbac:groups=config.openshift.io;operator.openshift.io,resources=networks,resourceNames=cluster,verbs=get
// +kubebuilder:rbac:groups=crd.projectcalico.org,resources=felixconfigurations,resourceNames=default,verbs=get
// +kubebuilder:rbac:groups=crd.projectcalico.org,resources=ippools,verbs=list
// +kubebuilder:rbac:groups=apps,resources=daemonsets,resourceNames=calico-node;cilium,verbs=get
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=get;list;watch;create;patch;update;delete
// +kubebuilder:rbac:groups=batch,resources=jobs/status,verbs=update
// +kubebuilder:rbac:groups="",resources=events,verbs=get;list;create;patch
// +kubebuilder:rbac:groups="",resources=pods/log,verbs=get
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=scheduling.k8s.io,resources=priorityclasses,verbs=get;list
// +kubebuilder:rbac:groups="",resources=resourcequotas;limitranges,verbs=get;list;watch
// +kubebuilder:rbac:groups=quota.openshift.io,resources=clusterresourcequotas,verbs=list
// +kubebuilder:rbac:groups=scheduling.k8s.io;scheduling.x-k8s.io;scheduling.volcano.sh,resources=podgroups,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=mpi.opendatahub.io,resources=jobreports,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingwebhookconfigurations,resourceNames=mpijob-validating,verbs=get;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,verbs=create,namespace=mpijob-system
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=mpijob-operator,verbs=get;update,namespace=mpijob-system
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch,namespace=mpijob-system
// +kubebuilder:rbac:groups="",resources=secrets,verbs=create,namespace=mpijob-system
// +kubebuilder:rbac:groups="",resources=secrets,resourceNames=mpijob-webhook-certificate,verbs=get;update,namespace=mpijob-system

// With Kubeflow Trainer and Kueue: runtimes are only read, JobSets suspended and resumed, and TrainJobs deleted when their TTL expires.
//
// +kubebuilder:rbac:groups=jobset.x-k8s.io,resources=jobsets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=trainer.kubeflow.org,resources=trainjobs;trainingruntimes;clustertrainingruntimes,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=mpijob-mutating,verbs=get;patch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloads,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=localqueues,verbs=get;list
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=clusterqueues,verbs=get;list
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=resourceflavors,verbs=list
// +kubebuilder:rbac:groups=kueue.x-k8s.io,resources=workloadpriorityclasses,verbs=list
// +kubebuilder:rbac:groups=visibility.kueue.x-k8s.io,resources=localqueues/pendingworkloads,verbs=get

// Tests of runtimes: their jobs are the only TrainJobs that the operator creates.
//
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=validatingadmissionpolicies;validatingadmissionpolicybindings,resourceNames=mpijob-runtimetest,verbs=get
// +kubebuilder:rbac:groups=mpi.opendatahub.io,resources=runtimetests,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=mpi.opendatahub.io,resources=runtimetests/status,verbs=update
// +kubebuilder:rbac:groups=mpi.opendatahub.io,resources=runtimetests/finalizers,verbs=update
// +kubebuilder:rbac:groups=trainer.kubeflow.org,resources=trainjobs,verbs=create;delete
