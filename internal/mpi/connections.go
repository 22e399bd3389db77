package mpi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ConnectionsPath is where users of every kind of job name its connections.
var ConnectionsPath = field.NewPath("metadata", "annotations").Key(AnnotationConnections)

// ConnectionsNeedAgent warns of connections on a job whose ranks the image's own sshd starts.
var ConnectionsNeedAgent = fmt.Sprintf("%s: the image's own sshd starts this job's ranks, and gives them none of the container's variables: "+
	"name them to mpirun (Open MPI: -x AWS_S3_BUCKET), or let the agent start the ranks, with which they have all of them", ConnectionsPath)

// Connection is what is known of a Secret that a job names as a data connection. Values are never part of it.
type Connection struct {
	Name string
	// Missing is set where there is no such Secret.
	Missing bool
	// Keys are the names of its keys, sorted.
	Keys []string
}

// ConnectionNames reads the names of a job's connections, each once, in the order in which they are written. What is no
// name of a Secret in the job's own namespace is an error.
func ConnectionNames(namespace string, annotations map[string]string) ([]string, field.ErrorList) {
	var names []string
	var errs field.ErrorList
	for part := range strings.SplitSeq(annotations[AnnotationConnections], ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		in, name, qualified := strings.Cut(part, "/")
		if !qualified {
			in, name = namespace, part
		}
		switch problems := validation.IsDNS1123Subdomain(name); {
		case len(problems) > 0:
			errs = append(errs, field.Invalid(ConnectionsPath, part, "is no name of a connection: "+strings.Join(problems, "; ")+"; several are separated by commas"))
		case in != namespace:
			errs = append(errs, field.Invalid(ConnectionsPath, part,
				fmt.Sprintf("is in another namespace than the job: pods read Secrets of their own namespace alone, %s; make the connection there", cmp.Or(namespace, "the job's"))))
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, errs
}

// CheckConnections judges the connections of a job, given in the job's order. One that is not there is warned of, since
// it may come before the pods do. Two with the same key are refused: which of them the ranks would get depends on their
// order, and one of both is not what the job's user means.
func CheckConnections(namespace string, found []Connection) (errs field.ErrorList, warnings []string) {
	first := map[string]string{}
	type pair struct{ first, second string }
	var pairs []pair
	same := map[pair][]string{}
	for _, connection := range found {
		if connection.Missing {
			warnings = append(warnings, fmt.Sprintf("%s: there is no Secret %q in the namespace %s; the pods wait until it is there", ConnectionsPath, connection.Name, namespace))
		}
		for _, key := range connection.Keys {
			before, taken := first[key]
			if !taken {
				first[key] = connection.Name
				continue
			}
			both := pair{before, connection.Name}
			if same[both] == nil {
				pairs = append(pairs, both)
			}
			same[both] = append(same[both], key)
		}
	}
	for _, both := range pairs {
		errs = append(errs, field.Invalid(ConnectionsPath, both.first+","+both.second,
			fmt.Sprintf("both set %s, and a rank can have one of each: leave one of these connections out, and give the job its keys as variables of other names (env: valueFrom: secretKeyRef)", keyList(same[both]))))
	}
	return errs, warnings
}

// keyList names keys, and of many the first ones.
func keyList(keys []string) string {
	const most = 5
	if more := len(keys) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(keys[:most], ", "), more)
	}
	return strings.Join(keys, ", ")
}

// ConnectionSources are what brings connections into a container's environment. What the container sets itself (env)
// stands, and so does what it takes from elsewhere (envFrom) in the connections' stead.
func ConnectionSources(names []string) []corev1.EnvFromSource {
	var sources []corev1.EnvFromSource
	for _, name := range names {
		sources = append(sources, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}
	return sources
}
