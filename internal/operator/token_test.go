package operator_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"opendatahub.io/mpijob/internal/cost"
)

// tokenServer is an API server on which the operator's token is used: by the operator, and by a thief.
type tokenServer struct {
	trainerServer
	operator client.Client
	// used are the writes that succeeded with the operator's token, as "VERB RESOURCE.GROUP".
	mu   sync.Mutex
	used map[string]bool
}

func newTokenServer(t *testing.T) *tokenServer {
	t.Helper()
	s := &tokenServer{trainerServer: newTrainerServer(t), used: map[string]bool{}}
	crd := &unstructured.Unstructured{}
	data, err := os.ReadFile(filepath.Join("testdata", "workloads.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &crd.Object); err != nil {
		t.Fatal(err)
	}
	s.create(t, crd)
	for _, group := range []string{"scheduling.x-k8s.io", "scheduling.volcano.sh"} {
		if err := install(s.client, podGroups(group, "v1")); err != nil {
			t.Fatal(err)
		}
	}
	config := asOperator(s.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorded{next, s} })
	if s.operator, err = client.New(config, client.Options{Scheme: s.client.Scheme()}); err != nil {
		t.Fatal(err)
	}
	return s
}

// recorded notes the writes that succeed.
type recorded struct {
	http.RoundTripper
	server *tokenServer
}

func (r recorded) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[request.Method]
	if err == nil && verb != "" && response.StatusCode < 300 {
		r.server.mu.Lock()
		defer r.server.mu.Unlock()
		r.server.used[verb+" "+resourceOf(request.URL.Path)] = true
	}
	return response, err
}

// resourceOf returns the resource of a path, such as jobs/status.batch of /apis/batch/v1/namespaces/default/jobs/pi/status.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	if parts[0] == "apis" {
		group, parts = "."+parts[1], parts[1:]
	}
	if parts = parts[2:]; parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2] + group
	}
	return parts[0] + group
}

// an returns an object from its manifest.
func an(manifest string, args ...any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.UnmarshalStrict(fmt.Appendf(nil, manifest, args...), &object.Object); err != nil {
		panic(fmt.Sprintf("%v in %s", err, fmt.Sprintf(manifest, args...)))
	}
	return object
}

// minimal manifests of what jobs own, by kind.
var minimal = map[string]string{
	"Pod":           `{apiVersion: v1, kind: Pod, spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}`,
	"Service":       `{apiVersion: v1, kind: Service, spec: {clusterIP: None, selector: {a: b}}}`,
	"ConfigMap":     `{apiVersion: v1, kind: ConfigMap, data: {hostfile: x}}`,
	"Secret":        `{apiVersion: v1, kind: Secret, type: kubernetes.io/ssh-auth, stringData: {ssh-privatekey: x}}`,
	"Job":           `{apiVersion: batch/v1, kind: Job, spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: x}]}}}}`,
	"NetworkPolicy": `{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {matchLabels: {a: b}}}}`,
	"PodGroup":      `{apiVersion: scheduling.x-k8s.io/v1, kind: PodGroup, spec: {minMember: 3}}`,
	"Volcano":       `{apiVersion: scheduling.volcano.sh/v1, kind: PodGroup, spec: {minMember: 3}}`,
	"MPIJob": `{apiVersion: kubeflow.org/v2beta1, kind: MPIJob, spec: {mpiReplicaSpecs: {Launcher: {template: {spec: {containers: [{name: main, image: x}]}}},
		Worker: {replicas: 1, template: {spec: {containers: [{name: main, image: x}]}}}}}}`,
	"TrainJob":    `{apiVersion: trainer.kubeflow.org/v1alpha1, kind: TrainJob, spec: {runtimeRef: {name: mpi}}}`,
	"RuntimeTest": `{apiVersion: mpi.opendatahub.io/v1alpha1, kind: RuntimeTest, spec: {runtimeRef: {name: mpi, kind: TrainingRuntime}}}`,
	"JobSet":      `{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {annotations: {mpi.opendatahub.io/gate: closed}}, spec: {suspend: true}}`,
	"Workload":    `{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, spec: {queueName: team, priority: 1, active: true}}`,
	"JobReport":   `{apiVersion: mpi.opendatahub.io/v1alpha1, kind: JobReport, spec: {jobRef: {apiVersion: v1, kind: MPIJob, name: pi, uid: x}}}`,
	"Event":       `{apiVersion: v1, kind: Event, involvedObject: {kind: MPIJob, name: pi, namespace: NAMESPACE}, reason: R, message: m, type: Normal}`,
	"Lease":       `{apiVersion: coordination.k8s.io/v1, kind: Lease, spec: {holderIdentity: x}}`,
}

// owner returns an owner reference to a job, as the operator writes it.
func owner(of *unstructured.Unstructured) metav1.OwnerReference {
	return *metav1.NewControllerRef(of, of.GroupVersionKind())
}

// invented is an owner that does not exist.
func invented(apiVersion, kind string) metav1.OwnerReference {
	return metav1.OwnerReference{APIVersion: apiVersion, Kind: kind, Name: "none", UID: "11111111-2222-3333-4444-555555555555", Controller: new(true)}
}

// of returns a minimal object of a namespace, with owners.
func of(kind, namespace, name string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
	object := an("%s", strings.ReplaceAll(minimal[kind], "NAMESPACE", namespace))
	object.SetNamespace(namespace)
	object.SetName(name)
	if len(owners) > 0 {
		object.SetOwnerReferences(owners)
	}
	return object
}

// merge patches an object with the operator's token.
func (s *tokenServer) merge(object client.Object, patch string) func() error {
	return func() error {
		return s.operator.Patch(context.Background(), object, client.RawPatch(types.MergePatchType, []byte(patch)))
	}
}

// apply applies an object, as cluster.Apply does: for its UID only.
func (s *tokenServer) apply(existing *unstructured.Unstructured, change func(*unstructured.Unstructured)) func() error {
	return func() error {
		wanted := existing.DeepCopy()
		change(wanted)
		wanted.SetResourceVersion("")
		wanted.SetManagedFields(nil)
		wanted.SetCreationTimestamp(metav1.Time{})
		unstructured.RemoveNestedField(wanted.Object, "metadata", "generation")
		unstructured.RemoveNestedField(wanted.Object, "status")
		data, err := wanted.MarshalJSON()
		if err != nil {
			return err
		}
		target := &unstructured.Unstructured{}
		target.SetGroupVersionKind(existing.GroupVersionKind())
		target.SetNamespace(existing.GetNamespace())
		target.SetName(existing.GetName())
		return s.operator.Patch(context.Background(), target, client.RawPatch(types.ApplyPatchType, data), client.ForceOwnership, client.FieldOwner("mpijob-operator"))
	}
}

func (s *tokenServer) add(object client.Object) func() error {
	return func() error { return s.operator.Create(context.Background(), object) }
}

func (s *tokenServer) remove(object client.Object) func() error {
	return func() error {
		uid := object.GetUID()
		return s.operator.Delete(context.Background(), object, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
}

// update changes an object as it is on the server, and writes it back.
func (s *tokenServer) update(object *unstructured.Unstructured, change func(*unstructured.Unstructured)) func() error {
	return func() error {
		now, err := s.now(object)
		if err != nil {
			return err
		}
		change(now)
		return s.operator.Update(context.Background(), now)
	}
}

// updateStatus is update for the status.
func (s *tokenServer) updateStatus(object *unstructured.Unstructured, change func(*unstructured.Unstructured)) func() error {
	return func() error {
		now, err := s.now(object)
		if err != nil {
			return err
		}
		change(now)
		return s.operator.Status().Update(context.Background(), now)
	}
}

func (s *tokenServer) now(object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind())
	return now, s.client.Get(context.Background(), client.ObjectKeyFromObject(object), now)
}

// exists has the administrator create an object, with a status.
func (s *tokenServer) exists(t *testing.T, object *unstructured.Unstructured, status ...string) *unstructured.Unstructured {
	t.Helper()
	s.create(t, object)
	for _, text := range status {
		if err := yaml.Unmarshal([]byte("status: "+text), &object.Object); err != nil {
			t.Fatal(err)
		}
		err := s.client.Status().Update(t.Context(), object)
		if apierrors.IsNotFound(err) || err == nil && object.Object["status"] == nil { // a kind without this subresource
			_ = yaml.Unmarshal([]byte("status: "+text), &object.Object)
			err = s.client.Update(t.Context(), object)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return object
}

// set sets a field of an object.
func set(value any, path ...string) func(*unstructured.Unstructured) {
	return func(object *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(object.Object, value, path...); err != nil {
			panic(err)
		}
	}
}

const running, finished = `{conditions: [{type: Running, status: "True"}, {type: Succeeded, status: "False"}]}`, `{conditions: [{type: Succeeded, status: "True"}]}`

// write is an attempt to write with the operator's token.
type write struct {
	what string
	do   func() error
}

// TestOperatorTokenWritesWhatJobsNeed: the policies for the operator's service account let each write of the operator pass, of each
// kind of job. Its role contains no other writes.
func TestOperatorTokenWritesWhatJobsNeed(t *testing.T) {
	needsPolicies(t)
	t.Parallel()
	s := newTokenServer(t)
	const user = "default"
	mpiJob := s.exists(t, of("MPIJob", user, "pi"), running)
	trainJob := s.exists(t, of("TrainJob", user, "train"))
	test := s.exists(t, of("RuntimeTest", user, "test"))
	byMPIJob, byTrainJob, byTest := owner(mpiJob), owner(trainJob), owner(test)

	var writes []write
	add := func(what string, do func() error) { writes = append(writes, write{what, do}) }
	dry := of("Pod", user, "dry")
	add("a dry run of a pod of no job", func() error { return s.operator.Create(t.Context(), dry, client.DryRunAll) })
	dry = of("Pod", "kube-system", "dry")
	add("a dry run in kube-system", func() error { return s.operator.Create(t.Context(), dry, client.DryRunAll) })
	for _, kind := range []string{"Pod", "Service", "ConfigMap", "Secret", "Job", "NetworkPolicy", "PodGroup", "Volcano"} {
		object := of(kind, user, "made", byMPIJob)
		add("create a "+kind, s.add(object))
		if kind != "Secret" && kind != "ConfigMap" && kind != "Service" {
			add("delete a "+kind, s.remove(object))
		}
		// Objects of mpi-operator, and those whose labels somebody has removed, get our labels.
		add("adopt a "+kind, s.merge(s.exists(t, of(kind, user, "adopted", byMPIJob)), `{"metadata":{"labels":{"training.kubeflow.org/operator-name":"mpi-operator"}}}`))
	}
	// What a user's job may contain where the namespace allows it.
	privileged := of("Pod", user, "privileged", byMPIJob)
	privileged.Object["spec"] = an(`{hostNetwork: true, hostPID: true, hostIPC: true, serviceAccountName: other, containers: [{name: main, image: x, securityContext: {privileged: true},
		volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, hostPath: {path: /}}]}`).Object
	add("create a privileged pod of a job", s.add(privileged))
	other := byMPIJob
	other.BlockOwnerDeletion = nil
	foreign := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x"}
	two := s.exists(t, of("ConfigMap", user, "two-owners", foreign, other))
	add("change an object with another owner besides", s.merge(two, `{"data":{"hostfile":"y"}}`))
	for _, kind := range []string{"Service", "ConfigMap", "NetworkPolicy", "PodGroup", "Volcano"} {
		add("apply a "+kind, s.apply(s.exists(t, of(kind, user, "applied", byMPIJob)), set("b", "metadata", "annotations", "a")))
	}
	shown := s.exists(t, an(`{apiVersion: v1, kind: Service, metadata: {namespace: default, name: shown}, spec: {clusterIP: None, externalIPs: [192.0.2.1], selector: {a: b}}}`))
	shown.SetOwnerReferences([]metav1.OwnerReference{byMPIJob})
	if err := s.client.Update(t.Context(), shown); err != nil {
		t.Fatal(err)
	}
	add("mend a Service that a user has changed", s.merge(shown, `{"spec":{"selector":{"a":"c"}}}`))

	// The launcher is suspended, and resumed with its template.
	launcher := s.exists(t, of("Job", user, "pi-launcher", byMPIJob), `{startTime: "2026-01-01T00:00:00Z", active: 1}`)
	add("suspend a launcher", s.update(launcher, set(true, "spec", "suspend")))
	suspended := s.exists(t, of("Job", user, "suspended", byMPIJob))
	set(true, "spec", "suspend")(suspended)
	if err := s.client.Update(t.Context(), suspended); err != nil {
		t.Fatal(err)
	}
	suspended.Object["status"] = an(`{startTime: "2026-01-01T00:00:00Z", conditions: [{type: Suspended, status: "True"}]}`).Object
	if err := s.client.Status().Update(t.Context(), suspended); err != nil {
		t.Fatal(err)
	}
	add("clear the start time of a suspended launcher", s.updateStatus(suspended, func(o *unstructured.Unstructured) { unstructured.RemoveNestedField(o.Object, "status", "startTime") }))
	add("resume a launcher", s.update(suspended, func(o *unstructured.Unstructured) {
		set(false, "spec", "suspend")(o)
		set("gpu", "spec", "template", "spec", "nodeSelector", "pool")(o)
	}))
	add("raise a launcher's backoffLimit", s.update(launcher, set(int64(9), "spec", "backoffLimit")))

	// TrainJobs: a NetworkPolicy that selects the JobSet's pods, and the gate of the JobSet.
	policy := of("NetworkPolicy", user, "train.trainjob", byTrainJob)
	set(map[string]any{"jobset.sigs.k8s.io/jobset-name": "train"}, "spec", "podSelector", "matchLabels")(policy)
	add("create the NetworkPolicy of a TrainJob", s.add(policy))
	policy = policy.DeepCopy()
	policy.SetName("applied.trainjob")
	add("apply the NetworkPolicy of a TrainJob", s.apply(s.exists(t, policy), set("namespace/s3:9000", "metadata", "annotations", "mpi.opendatahub.io/endpoints")))
	policy = policy.DeepCopy()
	policy.SetName("doomed.trainjob")
	policy.SetResourceVersion("")
	add("delete the NetworkPolicy of a TrainJob", s.remove(s.exists(t, policy)))
	jobSet := s.exists(t, of("JobSet", user, "train", byTrainJob))
	for _, open := range []bool{true, false} {
		add(fmt.Sprintf("open the gate of a TrainJob: %t", open), s.merge(jobSet, fmt.Sprintf(`{"metadata":{"uid":%q,"annotations":{"mpi.opendatahub.io/gate":"%t"}},"spec":{"suspend":%t}}`, jobSet.GetUID(), open, !open)))
	}
	for name, by := range map[string]metav1.OwnerReference{"of-mpijob": byMPIJob, "of-trainjob": byTrainJob} {
		workload := s.exists(t, of("Workload", user, name, by))
		add("requeue the Workload "+name, s.merge(workload, fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{"mpi.opendatahub.io/gang-timeouts":"1"}},"spec":{"active":false}}`, workload.GetResourceVersion())))
	}

	// Jobs that have finished, and tests of runtimes.
	add("write the status of an MPIJob", s.updateStatus(mpiJob, set([]any{map[string]any{"type": "Running", "status": "True"}}, "status", "conditions")))
	for _, end := range []string{"Succeeded", "Failed"} {
		add("delete an MPIJob whose TTL has expired: "+end, s.remove(s.exists(t, of("MPIJob", user, "over-"+strings.ToLower(end)), strings.ReplaceAll(finished, "Succeeded", end))))
	}
	for _, end := range []string{"Complete", "Failed"} {
		add("delete a TrainJob whose TTL has expired: "+end, s.remove(s.exists(t, of("TrainJob", user, "over-"+strings.ToLower(end)), strings.ReplaceAll(finished, "Succeeded", end))))
	}
	tested := of("TrainJob", user, "rtt-1", byTest)
	add("create the TrainJob of a test", s.add(tested))
	add("delete the TrainJob of a test", s.remove(tested))
	add("write the status of a test", s.updateStatus(test, set("Running", "status", "phase")))
	add("delete a test that has finished", s.remove(s.exists(t, of("RuntimeTest", user, "over"), `{phase: Passed, completionTime: "2026-01-01T00:00:00Z"}`)))

	report := of("JobReport", user, "pi")
	add("create a report", s.add(report))
	add("write a report", s.patch(report, set("Running", "status", "phase")))
	add("note in a report that the job is to be deleted", s.update(report, set("x", "metadata", "annotations", "mine")))
	add("delete a report", s.remove(report))
	for _, namespace := range []string{user, "mpijob-system"} {
		event := of("Event", namespace, "e")
		add("create an event in "+namespace, s.add(event))
		add("count an event in "+namespace, s.merge(event, `{"count":2}`))
	}

	// What it does for itself.
	lease := of("Lease", "mpijob-system", "mpijob-operator")
	add("create the lease", s.add(lease))
	add("renew the lease", s.update(lease, set("y", "spec", "holderIdentity")))
	certificate := an(`{apiVersion: v1, kind: Secret, metadata: {namespace: mpijob-system, name: mpijob-webhook-certificate}, type: kubernetes.io/tls, stringData: {tls.crt: "", tls.key: "", caller-key: x}}`)
	add("create the certificate", s.add(certificate))
	add("renew the certificate", s.update(certificate, set("eA==", "data", "caller-key")))
	for _, name := range []string{cost.LedgerName(user, "2026-11"), cost.DeletedReportsName} {
		sums := of("ConfigMap", "mpijob-system", name)
		add("create "+name, s.add(sums))
		add("change "+name, s.merge(sums, `{"data":{"a":"b"}}`))
	}
	for _, configuration := range s.webhooks(t) {
		add("trust the certificate: "+configuration.GetName(), s.patch(configuration, func(o *unstructured.Unstructured) {
			for _, webhook := range o.Object["webhooks"].([]any) {
				set("eA==", "clientConfig", "caBundle")(&unstructured.Unstructured{Object: webhook.(map[string]any)})
				set("/secret", "clientConfig", "service", "path")(&unstructured.Unstructured{Object: webhook.(map[string]any)})
			}
		}))
	}
	// Reviews are not stored.
	add("review a token", s.add(an(`{apiVersion: authentication.k8s.io/v1, kind: TokenReview, spec: {token: x}}`)))
	add("review a right", s.add(an(`{apiVersion: authorization.k8s.io/v1, kind: SubjectAccessReview, spec: {user: x, nonResourceAttributes: {path: /metrics, verb: get}}}`)))

	s.awaitPolicies(t)
	for _, write := range writes {
		if err := write.do(); err != nil {
			t.Errorf("%s: %v", write.what, err)
		}
	}
	granted, err := writesOf("role.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, right := range granted {
		// Finalizers are for the plug-in OwnerReferencesPermissionEnforcement, and never requested. This API server has no
		// PodGroups of Kubernetes itself.
		if !s.used[right] && !strings.Contains(right, "/finalizers.") && !strings.HasSuffix(right, "podgroups.scheduling.k8s.io") {
			t.Errorf("no write of the operator needs the right to %s", right)
		}
	}
	for _, right := range slices.Sorted(maps.Keys(s.used)) {
		if !slices.Contains(granted, right) {
			t.Errorf("a write succeeded without the right to %s", right)
		}
	}
}

// writesOf returns the rights to write of a file of config/rbac, as "VERB RESOURCE.GROUP".
func writesOf(file string) ([]string, error) {
	objects, err := manifests("rbac", file)
	if err != nil {
		return nil, err
	}
	var rights []string
	for _, object := range objects {
		data, err := object.MarshalJSON()
		if err != nil {
			return nil, err
		}
		var role rbacv1.ClusterRole
		if err := utilyaml.Unmarshal(data, &role); err != nil {
			return nil, err
		}
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						if verb != "get" && verb != "list" && verb != "watch" {
							rights = append(rights, strings.TrimSuffix(verb+" "+resource+"."+group, "."))
						}
					}
				}
			}
		}
	}
	return rights, nil
}

// webhooks creates the webhook configurations of config/webhook, which intercept nothing here.
func (s *tokenServer) webhooks(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	var found []*unstructured.Unstructured
	for _, file := range []string{"webhook.yaml", "mutating.yaml"} {
		objects, err := manifests("webhook", file)
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range objects {
			if !strings.HasSuffix(object.GetKind(), "WebhookConfiguration") {
				continue
			}
			for _, webhook := range object.Object["webhooks"].([]any) {
				set(map[string]any{"matchLabels": map[string]any{"none": "none"}}, "namespaceSelector")(&unstructured.Unstructured{Object: webhook.(map[string]any)})
			}
			s.create(t, object)
			found = append(found, object)
		}
	}
	return found
}

// patch changes an object by a merge patch, as the operator does with its webhook configurations.
func (s *tokenServer) patch(object *unstructured.Unstructured, change func(*unstructured.Unstructured)) func() error {
	return func() error {
		now, err := s.now(object)
		if err != nil {
			return err
		}
		changed := now.DeepCopy()
		change(changed)
		return s.operator.Patch(context.Background(), changed, client.MergeFromWithOptions(now, client.MergeFromWithOptimisticLock{}))
	}
}

// awaitPolicies waits until the API server enforces the policies, which takes a while after they were created.
func (s *tokenServer) awaitPolicies(t *testing.T) {
	t.Helper()
	notGated := of("JobSet", "default", "await-policies")
	notGated.SetAnnotations(nil)
	s.create(t, notGated)
	canary := of("ConfigMap", "default", "await-policies")
	s.create(t, canary)
	hook := an(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: mpijob-mutating}}`)
	if err := s.client.Create(t.Context(), hook); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for policy, do := range map[string]func() error{
		"mpijob-operator":          s.merge(canary, `{"data":{"a":"b"}}`),
		"mpijob-operator-jobs":     s.merge(notGated, `{"spec":{"suspend":false}}`),
		"mpijob-operator-webhooks": s.merge(hook, `{"metadata":{"labels":{"a":"b"}}}`),
	} {
		eventually(t, "the API server enforces "+policy, func() error { return isDenied(do(), "ValidatingAdmissionPolicy '"+policy+"'") })
	}
}

// isDenied returns an error unless an attempt was forbidden by a policy.
func isDenied(err error, by string) error {
	switch {
	case err == nil:
		return errors.New("it succeeded")
	case !apierrors.IsForbidden(err), !strings.Contains(err.Error(), by):
		return err
	}
	return nil
}

// TestOperatorTokenCannotSteal: who has the operator's token cannot make objects of no job, take over those of others, nor
// change what is sent to its webhooks.
func TestOperatorTokenCannotSteal(t *testing.T) {
	needsPolicies(t)
	t.Parallel()
	s := newTokenServer(t)
	const user = "default"
	for _, namespace := range []string{"openshift", "openshift-monitoring", "argocd"} {
		object := an(`{apiVersion: v1, kind: Namespace, metadata: {name: %s}}`, namespace)
		if namespace == "argocd" {
			object.SetLabels(map[string]string{"mpi.opendatahub.io/jobs": "deny"})
		}
		s.create(t, object)
	}
	mpiJob, trainJob, otherJob := s.exists(t, of("MPIJob", user, "pi"), running), s.exists(t, of("TrainJob", user, "train")), s.exists(t, of("MPIJob", user, "other"))
	byMPIJob, byTrainJob := owner(mpiJob), owner(trainJob)
	deployment := invented("apps/v1", "Deployment")
	noJob := invented("kubeflow.org/v2beta1", "MPIJob")

	var writes []write
	add := func(what string, do func() error) { writes = append(writes, write{what, do}) }
	kinds := []string{"Pod", "Service", "ConfigMap", "Secret", "Job", "NetworkPolicy", "PodGroup", "Volcano"}
	evil := byMPIJob
	evil.APIVersion = "kubeflow.org.example.com/v1"
	notController := byMPIJob
	notController.Controller = nil
	takeOver := `{"metadata":{"ownerReferences":[{"apiVersion":"kubeflow.org/v2beta1","kind":"MPIJob","name":"pi","uid":"` + string(mpiJob.GetUID()) + `","controller":true}]},"data":{"a":"Yg=="}}`
	for _, kind := range kinds {
		add("create a "+kind+" of no job", s.add(of(kind, user, "no-job")))
		add("create a "+kind+" of a Deployment", s.add(of(kind, user, "deployment", deployment)))
		add("create a "+kind+" of an MPIJob of another group", s.add(of(kind, user, "group", evil)))
		add("create a "+kind+" that its job does not control", s.add(of(kind, user, "no-controller", notController)))
		for _, namespace := range []string{"kube-system", "openshift", "openshift-monitoring", "mpijob-system", "argocd"} {
			add("create a "+kind+" of an invented job in "+namespace, s.add(of(kind, namespace, "invented", noJob)))
			add("take over a "+kind+" in "+namespace, s.merge(s.exists(t, of(kind, namespace, "theirs")), takeOver))
		}
		if kind != "NetworkPolicy" {
			add("create a "+kind+" of a TrainJob", s.add(of(kind, user, "trainjob", byTrainJob)))
		}
		theirs := s.exists(t, of(kind, user, "theirs"))
		add("take over a "+kind, s.merge(theirs, takeOver))
		add("take over a "+kind+" by an apply", s.apply(theirs, func(o *unstructured.Unstructured) { o.SetOwnerReferences([]metav1.OwnerReference{byMPIJob}) }))
		deployed := s.exists(t, of(kind, user, "deployed", deployment))
		add("take over a "+kind+" of a Deployment", s.merge(deployed, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"kubeflow.org/v2beta1","kind":"MPIJob","name":"none","uid":%q,"controller":true}]}}`, deployment.UID)))
		ofOther := s.exists(t, of(kind, user, "other", owner(otherJob)))
		add("give a "+kind+" of a job to another", s.merge(ofOther, takeOver))
		if kind != "Secret" && kind != "ConfigMap" && kind != "Service" {
			add("delete a "+kind, s.remove(theirs))
			add("delete a "+kind+" of a Deployment", s.remove(deployed))
		}
	}
	worker := s.exists(t, of("Pod", user, "pi-worker-0", byMPIJob))
	add("change the image of a job's pod", s.merge(worker, `{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"main","image":"evil"}]}}`))
	withInit := of("Pod", user, "pi-worker-1", byMPIJob)
	set([]any{map[string]any{"name": "init", "image": "x"}}, "spec", "initContainers")(withInit)
	add("change the image of a job's init container", s.merge(s.exists(t, withInit), `{"spec":{"initContainers":[{"name":"init","image":"evil"}]}}`))
	snapshot := s.exists(t, of("ConfigMap", user, "train-runtime-snapshot", byTrainJob))
	add("change the snapshot of a TrainJob's runtime", s.merge(snapshot, `{"data":{"runtime":"x"}}`))
	for _, namespace := range []string{user, "mpijob-system"} {
		token := an(`{apiVersion: v1, kind: Secret, metadata: {name: token, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}`)
		token.SetNamespace(namespace)
		token.SetOwnerReferences([]metav1.OwnerReference{byMPIJob})
		add("create a Secret for an account's token in "+namespace, s.add(token))
		token = token.DeepCopy()
		token.SetName("mpijob-webhook-certificate")
		add("create a Secret for an account's token in the certificate's name in "+namespace, s.add(token))
	}
	certificate := an(`{apiVersion: v1, kind: Secret, metadata: {namespace: default, name: mpijob-webhook-certificate}, type: kubernetes.io/tls, stringData: {tls.crt: "", tls.key: ""}}`)
	add("create the certificate elsewhere", s.add(certificate))
	add("create sums of deleted reports elsewhere", s.add(of("ConfigMap", user, cost.LedgerName(user, "2026-11"))))
	add("create sums of deleted reports for the garbage collector", s.add(of("ConfigMap", "mpijob-system", cost.LedgerName(user, "2026-12"), byMPIJob)))
	add("create another ConfigMap of its namespace", s.add(of("ConfigMap", "mpijob-system", "mpijob-prices")))
	prices := s.exists(t, of("ConfigMap", "mpijob-system", "mpijob-prices-2"))
	add("change another ConfigMap of its namespace", s.merge(prices, `{"data":{"prices":"{}"}}`))
	keys := s.exists(t, of("Secret", user, "pi-ssh", byMPIJob))
	add("change a job's keys", s.merge(keys, `{"data":{"ssh-privatekey":"eQ=="}}`))
	exposed := of("Service", user, "exposed", byMPIJob)
	set([]any{"192.0.2.1"}, "spec", "externalIPs")(exposed)
	add("create a Service for an address outside", s.add(exposed))
	add("add an address outside to a job's Service", s.merge(s.exists(t, of("Service", user, "pi", byMPIJob)), `{"spec":{"externalIPs":["192.0.2.1"]}}`))
	balanced := of("Service", user, "balanced", byMPIJob)
	balanced.Object["spec"] = an(`{type: LoadBalancer, ports: [{port: 80}]}`).Object
	add("create a load balancer", s.add(balanced))
	add("complete a launcher", s.updateStatus(s.exists(t, of("Job", user, "pi-launcher", byMPIJob)), func(o *unstructured.Unstructured) {
		o.Object["status"] = an(`{succeeded: 1, startTime: "2026-01-01T00:00:00Z", completionTime: "2026-01-01T00:00:00Z",
			conditions: [{type: SuccessCriteriaMet, status: "True"}, {type: Complete, status: "True"}]}`).Object
	}))
	suspended := of("Job", user, "suspended")
	set(true, "spec", "suspend")(suspended)
	add("clear the start time of another's Job", s.updateStatus(s.exists(t, suspended, `{startTime: "2026-01-01T00:00:00Z"}`), func(o *unstructured.Unstructured) {
		unstructured.RemoveNestedField(o.Object, "status", "startTime")
	}))

	add("delete an MPIJob that runs", s.remove(mpiJob))
	add("delete an MPIJob without a status", s.remove(otherJob))
	add("delete a TrainJob that runs", s.remove(trainJob))
	add("create a TrainJob", s.add(of("TrainJob", user, "planted")))
	add("create a TrainJob of an MPIJob", s.add(of("TrainJob", user, "planted-2", byMPIJob)))
	add("delete a test that runs", s.remove(s.exists(t, of("RuntimeTest", user, "test"))))
	ungated := of("JobSet", user, "ungated", byTrainJob)
	ungated.SetAnnotations(nil)
	s.exists(t, ungated)
	add("resume a JobSet without a gate", s.merge(ungated, `{"metadata":{"annotations":{"mpi.opendatahub.io/gate":"open"}},"spec":{"suspend":false}}`))
	theirSet := s.exists(t, of("JobSet", user, "theirs"))
	add("resume a JobSet of no TrainJob", s.merge(theirSet, `{"spec":{"suspend":false}}`))
	add("take over a JobSet", s.merge(theirSet, takeOver))
	theirLoad, ourLoad := s.exists(t, of("Workload", user, "theirs", invented("batch/v1", "Job"))), s.exists(t, of("Workload", user, "ours", byMPIJob))
	add("deactivate a Workload of a Job", s.merge(theirLoad, `{"spec":{"active":false}}`))
	add("take over a Workload", s.merge(theirLoad, takeOver))
	add("change the priority of a Workload", s.merge(ourLoad, `{"spec":{"priority":1000}}`))
	add("change the queue of a Workload", s.merge(ourLoad, `{"spec":{"queueName":"other"}}`))

	for _, configuration := range s.webhooks(t) {
		for what, change := range map[string]func(first map[string]any){
			"intercept everything": func(first map[string]any) {
				first["rules"] = []any{map[string]any{"apiGroups": []any{"*"}, "apiVersions": []any{"*"}, "resources": []any{"*"}, "operations": []any{"*"}}}
			},
			"every namespace": func(first map[string]any) { delete(first, "namespaceSelector") },
			"fail open":       func(first map[string]any) { first["failurePolicy"] = "Ignore"; first["timeoutSeconds"] = int64(1) },
			"another condition": func(first map[string]any) {
				first["matchConditions"] = []any{map[string]any{"name": "never", "expression": "false"}}
			},
			"another service": func(first map[string]any) {
				first["clientConfig"].(map[string]any)["service"].(map[string]any)["namespace"] = user
			},
			"another port": func(first map[string]any) {
				first["clientConfig"].(map[string]any)["service"].(map[string]any)["port"] = int64(444)
			},
			"an address":   func(first map[string]any) { first["clientConfig"] = map[string]any{"url": "https://evil.example.com"} },
			"another name": func(first map[string]any) { first["name"] = "evil.example.com" },
		} {
			add("change the webhooks "+configuration.GetName()+": "+what, s.patch(configuration, func(o *unstructured.Unstructured) {
				change(o.Object["webhooks"].([]any)[0].(map[string]any))
			}))
		}
		add("remove the webhooks "+configuration.GetName(), s.patch(configuration, set([]any{}, "webhooks")))
		add("add one to the webhooks "+configuration.GetName(), s.patch(configuration, func(o *unstructured.Unstructured) {
			another := (&unstructured.Unstructured{Object: o.Object["webhooks"].([]any)[0].(map[string]any)}).DeepCopy().Object
			another["name"] = "another.example.com"
			o.Object["webhooks"] = append(o.Object["webhooks"].([]any), another)
		}))
		add("have the webhooks collected as garbage: "+configuration.GetName(), s.merge(configuration, takeOver))
	}

	s.awaitPolicies(t)
	for _, write := range writes {
		if err := isDenied(write.do(), "ValidatingAdmissionPolicy 'mpijob-operator"); err != nil {
			t.Errorf("%s: %v", write.what, err)
		}
	}
	for what, err := range map[string]error{
		"delete webhooks":               s.operator.Delete(t.Context(), an(`{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingWebhookConfiguration, metadata: {name: mpijob-mutating}}`)),
		"change the policies":           s.merge(an(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: mpijob-operator}}`), `{"spec":{"validations":[{"expression":"true"}]}}`)(),
		"unbind the policies":           s.operator.Delete(t.Context(), an(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: mpijob-operator}}`)),
		"take another lease":            s.merge(s.exists(t, of("Lease", "mpijob-system", "theirs")), `{"spec":{"holderIdentity":"x"}}`)(),
		"delete all pods":               s.operator.DeleteAllOf(t.Context(), of("Pod", user, ""), client.InNamespace(user)),
		"take the label of a namespace": s.merge(an(`{apiVersion: v1, kind: Namespace, metadata: {name: argocd}}`), `{"metadata":{"labels":null}}`)(),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
