// Package apiserver runs one kube-apiserver with its etcd, on free ports of the loopback interface, for as long
// as a case is measured.
package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"opendatahub.io/mpijob/hack/bench/relay"
)

// Options say which API server to run.
type Options struct {
	// Assets is the folder with kube-apiserver and etcd.
	Assets string
	// CRDs are the files of CustomResourceDefinitions to serve.
	CRDs []string
	// Audit writes down the requests of service accounts, for Requests. It costs the API server time.
	Audit bool
	// Gangs has it serve Kubernetes' own PodGroups.
	Gangs bool
	// Latency is how much longer than on this machine every answer to a service account takes.
	Latency time.Duration
	// Relay has service accounts reach it through a relay even without latency: Traffic, Cut and Resume need it.
	Relay bool
}

// GangGate is the feature gate with which Kubernetes places pods in groups.
const GangGate = "GenericWorkload=true"

// Server is an API server that runs.
type Server struct {
	environment *envtest.Environment
	admin       *rest.Config
	client      client.Client
	folder      string
	// far is how service accounts reach it; nil: like everybody.
	far *relay.Relay
}

// Start starts an API server. Its flags are its own defaults, but for what has no counterpart here: no
// controller gives namespaces a service account or takes the taint from a new node, so the admission plug-ins
// that wait for those are off.
func Start(options Options) (*Server, error) {
	folder, err := os.MkdirTemp("", "bench-apiserver-")
	if err != nil {
		return nil, fmt.Errorf("start API server: %w", err)
	}
	s := &Server{folder: folder, environment: &envtest.Environment{
		BinaryAssetsDirectory: options.Assets,
		CRDDirectoryPaths:     options.CRDs,
		ErrorIfCRDPathMissing: true,
	}}
	flags := s.environment.ControlPlane.GetAPIServer().Configure()
	flags.Append("disable-admission-plugins", "TaintNodesByCondition")
	// Only the clean-up between runs deletes collections.
	flags.Append("delete-collection-workers", "16")
	if options.Gangs {
		flags.Append("feature-gates", GangGate).Append("runtime-config", "scheduling.k8s.io/v1beta1=true")
	}
	s.environment.ControlPlane.Etcd = &envtest.Etcd{}
	s.environment.ControlPlane.Etcd.Configure().Set("unsafe-no-fsync", "false")
	if options.Audit {
		policy := filepath.Join(folder, "audit.yaml")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return nil, fmt.Errorf("start API server: %w", err)
		}
		flags.Append("audit-policy-file", policy).Append("audit-log-path", s.auditLog())
	}
	if s.admin, err = s.environment.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start API server: %w", err), s.Stop())
	}
	s.admin.QPS = -1
	if options.Latency > 0 || options.Relay {
		serving := s.environment.ControlPlane.GetAPIServer().SecureServing
		if s.far, err = relay.Start(net.JoinHostPort(serving.Address, serving.Port), options.Latency); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
	}
	if s.client, err = client.New(s.admin, client.Options{}); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to API server: %w", err), s.Stop())
	}
	return s, nil
}

// Stop ends the API server and removes all it had.
func (s *Server) Stop() error {
	var err error
	if s.far != nil {
		err = s.far.Stop()
	}
	return errors.Join(err, s.environment.Stop(), os.RemoveAll(s.folder))
}

// Admin is how to reach the API server as its administrator, whose requests are never queued.
func (s *Server) Admin() *rest.Config { return rest.CopyConfig(s.admin) }

// Account is a service account as clients use it: the API server's fairness, authorization and audit see it as
// they would see one of a pod.
type Account struct {
	// User is the account's name as a user.
	User string
	// Config and the file Kubeconfig are how to reach the API server as this account.
	Config     *rest.Config
	Kubeconfig string
}

// Account makes credentials of a service account.
func (s *Server) Account(namespace, name string) (Account, error) {
	user := "system:serviceaccount:" + namespace + ":" + name
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
	authenticated, err := s.environment.AddUser(envtest.User{Name: user, Groups: groups}, &rest.Config{})
	if err != nil {
		return Account{}, fmt.Errorf("add %s: %w", user, err)
	}
	if s.far != nil {
		authenticated.Config().Host = "https://" + s.far.Address()
	}
	kubeconfig, err := authenticated.KubeConfig()
	if err != nil {
		return Account{}, fmt.Errorf("add %s: %w", user, err)
	}
	file := filepath.Join(s.folder, namespace+"-"+name+".kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return Account{}, fmt.Errorf("add %s: %w", user, err)
	}
	return Account{User: user, Config: rest.CopyConfig(authenticated.Config()), Kubeconfig: file}, nil
}

// Traffic is how many bytes all service accounts together have sent and received so far.
func (s *Server) Traffic() (sent, received int64) { return s.far.Traffic() }

// Cut has service accounts find no API server until Resume. Administrators still reach it.
func (s *Server) Cut() error { return s.far.Cut() }

// Resume ends Cut.
func (s *Server) Resume() error { return s.far.Resume() }

// AdminKubeconfig is a file by which programs reach the API server as its administrator.
func (s *Server) AdminKubeconfig() (string, error) {
	file := filepath.Join(s.folder, "admin.kubeconfig")
	if err := os.WriteFile(file, s.environment.KubeConfig, 0o600); err != nil {
		return "", fmt.Errorf("write kubeconfig: %w", err)
	}
	return file, nil
}

// Install creates the objects of manifests, those with a namespace in the given one, as kustomize would do. What
// is there already stays.
func (s *Server) Install(ctx context.Context, namespace string, manifests ...string) error {
	for _, manifest := range manifests {
		data, err := os.ReadFile(manifest)
		if err != nil {
			return fmt.Errorf("install manifest: %w", err)
		}
		decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			var object unstructured.Unstructured
			if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return fmt.Errorf("install manifest %s: %w", manifest, err)
			}
			if err := s.install(ctx, namespace, &object); err != nil {
				return fmt.Errorf("install manifest %s: %w", manifest, err)
			}
		}
	}
	return nil
}

func (s *Server) install(ctx context.Context, namespace string, object *unstructured.Unstructured) error {
	namespaced, err := s.client.IsObjectNamespaced(object)
	if err != nil {
		return fmt.Errorf("find kind %s: %w", object.GetKind(), err)
	}
	if namespaced {
		object.SetNamespace(namespace)
	}
	if subjects, ok := object.Object["subjects"].([]any); ok {
		for _, subject := range subjects {
			if subject, ok := subject.(map[string]any); ok && subject["kind"] == rbacv1.ServiceAccountKind {
				subject["namespace"] = namespace
			}
		}
	}
	return s.create(ctx, object)
}

// Allow gives a user every right.
func (s *Server) Allow(ctx context.Context, user string) error {
	return s.create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	})
}

func (s *Server) create(ctx context.Context, object client.Object) error {
	if err := s.client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create %s: %w", object.GetName(), err)
	}
	return nil
}
