package operator

// What the guards need beside rbac.go's: TrainJobs, which are somebody else's to run, and the runtimes they name are
// read and nothing else.
//
// +kubebuilder:rbac:groups=trainer.kubeflow.org,resources=trainjobs;trainingruntimes;clustertrainingruntimes,verbs=get;list;watch
// +kubebuilder:rbac:groups=admissionregistration.k8s.io,resources=mutatingwebhookconfigurations,resourceNames=mpijob-mutating,verbs=get;patch
