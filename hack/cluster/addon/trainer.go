package addon

import (
	"opendatahub.io/mpijob/hack/cluster/binaries"
	"opendatahub.io/mpijob/hack/cluster/kubeapi"
)

type object = map[string]any

// trainer is Kubeflow Trainer with the JobSet that it requires. Its guide to
// the installation asks for Kubernetes 1.31.
func trainer() AddOn {
	return AddOn{Name: "trainer", Versions: []Version{
		// The CRD of JobSet v0.12 has a rule about metadata.namespace that Kubernetes 1.31 does not accept; 1.32 was not tried.
		{Version: "v2.3.0", OldestMinor: 33, Controllers: []Controller{jobSet("v0.12.0"), trainerManager("v2.3.0")}},
		{Version: "v2.1.0", OldestMinor: 31, Controllers: []Controller{jobSet("v0.10.1"), trainerManager("v2.1.0")}},
	}}
}

func jobSet(version string) Controller {
	return Controller{
		Controller: binaries.Controller{
			Name: "jobset", Version: version, Module: "sigs.k8s.io/jobset", Package: "sigs.k8s.io/jobset",
		},
		Manifests: "config", Overlay: "default",
		Namespace: "jobset-system", Deployment: "jobset-controller-manager", Container: "manager",
		Probe: kubeapi.Object{
			Path: "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets",
			Object: object{
				"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": object{"generateName": "probe-"},
				"spec": object{"replicatedJobs": []object{{
					"name": "probe", "template": object{"spec": object{"template": object{"spec": object{
						"restartPolicy": "Never", "containers": []object{{"name": "probe", "image": "probe"}},
					}}}},
				}}},
			},
		},
	}
}

func trainerManager(version string) Controller {
	const module = "github.com/kubeflow/trainer/v2"
	return Controller{
		Controller: binaries.Controller{
			Name: "trainer", Version: version, Module: module, Package: module + "/cmd/trainer-controller-manager",
		},
		Manifests: "manifests", Overlay: "overlays/manager",
		// It would be fetched from the Internet. Upstream says itself to
		// leave it out where there is a JobSet.
		Without:   []string{"../../third-party/jobset"},
		Namespace: "kubeflow-system", Deployment: "kubeflow-trainer-controller-manager", Container: "manager",
		Probe: kubeapi.Object{
			Path: "/apis/trainer.kubeflow.org/v1alpha1/namespaces/default/trainjobs",
			Object: object{
				"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": object{"generateName": "probe-"},
				// No runtime has a name like this: the webhook refuses the
				// job, and that is an answer.
				"spec": object{"runtimeRef": object{"name": "probe"}},
			},
		},
	}
}
