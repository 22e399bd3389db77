package mpi

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/podspec"
)

// Plaintext is a field by which a job's pods send traffic that no network plug-in encrypts.
type Plaintext struct {
	Field *field.Path
	// What is the traffic, such as "secondary networks", and Remedy how to do without.
	What, Remedy string
}

// Plaintexts returns the fields by which the traffic between a job's pods does not pass through the network that a plug-in may encrypt:
// the host network, secondary networks, and RDMA. Devices for RDMA are known by their names (podspec.IsRDMA).
func (j Job) Plaintexts() []Plaintext {
	var found []Plaintext
	add := func(at *field.Path, what, remedy string) {
		if j.External {
			// The user wrote only parts of the template, in one of several fields.
			at, remedy = j.Fields.Launch, remedy+", in the job or its runtime"
		}
		if one := (Plaintext{at, what, remedy}); !slices.Contains(found, one) {
			found = append(found, one)
		}
	}
	addPlaintexts(j.Launcher.Template, j.Fields.LauncherTemplate, add)
	if j.Workers.Count > 0 {
		addPlaintexts(j.Workers.Template, j.Fields.WorkerTemplate, add)
	}
	return found
}

func addPlaintexts(of corev1.PodTemplateSpec, at *field.Path, add func(at *field.Path, what, remedy string)) {
	if of.Spec.HostNetwork {
		add(at.Child("spec", "hostNetwork"), "the host network", "remove hostNetwork")
	}
	for _, name := range []string{MultusNetworks, MultusDefaultNetwork} {
		if of.Annotations[name] != "" {
			add(at.Child("metadata", "annotations").Key(name), "secondary networks", "remove the annotation "+name)
		}
	}
	for _, list := range []struct {
		name       string
		containers []corev1.Container
	}{{"initContainers", of.Spec.InitContainers}, {"containers", of.Spec.Containers}} {
		for i, container := range list.containers {
			if devices := rdmaOf(container); len(devices) > 0 {
				add(at.Child("spec", list.name).Index(i).Child("resources"), "RDMA ("+ResourceNames(devices)+")", "remove the request, and ranks communicate over TCP")
			}
		}
	}
}

// rdmaOf returns the RDMA resources that a container requests, sorted.
func rdmaOf(container corev1.Container) []corev1.ResourceName {
	var names []corev1.ResourceName
	for _, list := range []corev1.ResourceList{container.Resources.Requests, container.Resources.Limits} {
		for name, quantity := range list {
			if podspec.IsRDMA(name) && quantity.Sign() > 0 {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
