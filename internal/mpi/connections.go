package mpi

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"opendatahub.io/mpijob/internal/phrase"
)

// ConnectionsPath is the field in which users list the connections of a job of any kind.
var ConnectionsPath = field.NewPath("metadata", "annotations").Key(AnnotationConnections)

// ConnectionsWithoutAgent is the warning for connections of a job whose ranks are started by the image's sshd.
var ConnectionsWithoutAgent = fmt.Sprintf("%s: the image's sshd starts this job's ranks without the container's environment variables; "+
	"pass them to mpirun (Open MPI: -x AWS_S3_BUCKET), or use the agent to start the ranks, which passes all variables", ConnectionsPath)

// Connection is what is known about a Secret that a job lists as a data connection. It never holds values.
type Connection struct {
	Name string
	// Missing is whether the Secret does not exist.
	Missing bool
	// Keys are the names of the Secret's keys, sorted.
	Keys []string
}

// MaxConnections is the number of connections that a job may list. Admission reads each of them.
const MaxConnections = 32

// ParseConnections reads the names of a job's connections, without duplicates, in the order of the annotation. It
// returns an error for each entry that is not the name of a Secret in the job's namespace. If there are more than
// MaxConnections entries, the others are not read.
func ParseConnections(namespace string, annotations map[string]string) ([]string, field.ErrorList) {
	var names []string
	var errs field.ErrorList
	entries := 0
	for part := range strings.SplitSeq(annotations[AnnotationConnections], ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		if entries++; entries > MaxConnections {
			all := strings.Count(annotations[AnnotationConnections], ",") + 1
			return names, append(errs, field.TooMany(ConnectionsPath, all, MaxConnections))
		}
		in, name, qualified := strings.Cut(part, "/")
		if !qualified {
			in, name = namespace, part
		}
		shown := phrase.Cut(part, maxShownName)
		switch problems := validation.IsDNS1123Subdomain(name); {
		case len(problems) > 0:
			errs = append(errs, field.Invalid(ConnectionsPath, shown, "must be the name of a Secret: "+strings.Join(problems, "; ")+"; separate several names by commas"))
		case in != namespace:
			errs = append(errs, field.Invalid(ConnectionsPath, shown,
				fmt.Sprintf("is in another namespace than the job: pods can only read Secrets of their own namespace, %s; create the connection there", cmp.Or(namespace, "the job's"))))
		case !slices.Contains(names, name):
			names = append(names, name)
		}
	}
	return names, errs
}

// maxShownName is the length of a name in an error.
const maxShownName = 300

// LabelConnection is "true" on Secrets that are data connections of the Open Data Hub dashboard.
const LabelConnection = "opendatahub.io/dashboard"

// ValidateConnections validates the connections of a job, given in the job's order. A missing one is a warning,
// because it may be created before the pods are; it lists the others of the namespace, as far as they are known. Two with the same key
// are an error: the value that ranks get would depend on their order.
func ValidateConnections(namespace string, found []Connection, others []string) (errs field.ErrorList, warnings []string) {
	first := map[string]string{}
	type pair struct{ first, second string }
	var pairs []pair
	same := map[pair][]string{}
	for _, connection := range found {
		if connection.Missing {
			text := fmt.Sprintf("%s: Secret %q does not exist in namespace %s; the pods do not start until it is created", ConnectionsPath, connection.Name, namespace)
			if len(others) > 0 {
				text += ". Data connections of the namespace: " + listKeys(others)
			}
			warnings = append(warnings, text)
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
			fmt.Sprintf("both set %s, and a rank can only get one of each: remove one of these connections, and set its keys as variables with other names (env: valueFrom: secretKeyRef)", listKeys(same[both]))))
	}
	return errs, warnings
}

// listKeys joins the first keys and counts the others.
func listKeys(keys []string) string { return phrase.First(5, keys) }

// ConnectionSources returns the envFrom entries that add the keys of connections to a container's environment. The
// container's own env and envFrom override them.
func ConnectionSources(names []string) []corev1.EnvFromSource {
	var sources []corev1.EnvFromSource
	for _, name := range names {
		sources = append(sources, corev1.EnvFromSource{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}})
	}
	return sources
}
