// Package podserver simulates an API server with pods that write logs, over HTTP/2 and TLS like the real one. It is for
// tests and benchmarks: clients of any kind list and watch its pods and read their logs.
package podserver

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// Server is the stand-in.
type Server struct {
	// Mux serves pods; tests may add what else their client asks for.
	Mux  *http.ServeMux
	http *httptest.Server

	mu      sync.Mutex
	changed chan struct{}
	version int
	pods    map[types.UID]*corev1.Pod
	events  []event
	logs    map[string]*Log
	cut     chan struct{}
	opened  int
	objects map[string]any
}

type event struct {
	version int
	change  watch.EventType
	pod     *corev1.Pod
}

// New starts a server, which ends with the test.
func New(t testing.TB) *Server {
	t.Helper()
	s := Start()
	t.Cleanup(s.Close)
	return s
}

// Start starts a server, which ends with Close. As a kubelet, too, it serves logs: those of a Log named NAMESPACE/POD.
func Start() *Server {
	s := &Server{Mux: http.NewServeMux(), changed: make(chan struct{}), cut: make(chan struct{}), pods: map[types.UID]*corev1.Pod{}, logs: map[string]*Log{}, objects: map[string]any{}}
	s.Mux.HandleFunc("GET /version", answer(map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.1"}))
	s.Mux.HandleFunc("GET /api", answer(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}))
	s.Mux.HandleFunc("GET /apis", answer(metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}))
	s.Mux.HandleFunc("GET /api/v1", answer(metav1.APIResourceList{
		TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
		APIResources: []metav1.APIResource{
			{Name: "pods", SingularName: "pod", Namespaced: true, Kind: "Pod", Verbs: metav1.Verbs{"get", "list", "watch"}},
			{Name: "pods/log", Namespaced: true, Kind: "Pod", Verbs: metav1.Verbs{"get"}},
		},
	}))
	s.Mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods", s.list)
	s.Mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{name}", s.get)
	s.Mux.HandleFunc("GET /api/v1/namespaces/{namespace}/pods/{name}/log", s.podLog)
	s.Mux.HandleFunc("GET /containerLogs/{namespace}/{name}/{container}", func(w http.ResponseWriter, r *http.Request) {
		s.log(w, r, r.PathValue("namespace")+"/"+r.PathValue("name"))
	})
	s.http = httptest.NewUnstartedServer(s.Mux)
	s.http.EnableHTTP2 = true
	s.http.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that have one connection end others while these start
	s.http.StartTLS()
	return s
}

// Close ends the server and what it serves.
func (s *Server) Close() {
	s.Cut()
	s.http.CloseClientConnections()
	s.http.Close()
}

// Serve answers with an object at a path, instead of the one before. Watches of a list get no events.
func (s *Server) Serve(path string, object any) {
	s.mu.Lock()
	_, known := s.objects[path]
	s.objects[path] = object
	s.mu.Unlock()
	if known {
		return
	}
	s.Mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			s.mu.Lock()
			object := s.objects[path]
			s.mu.Unlock()
			answer(object)(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		flush(w)
		_, cut := s.state()
		select {
		case <-r.Context().Done():
		case <-cut:
		}
	})
}

// Config is how clients reach the server.
func (s *Server) Config() *rest.Config {
	return &rest.Config{Host: s.http.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}, QPS: -1}
}

// Kubeconfig is the same as a file's text.
func (s *Server) Kubeconfig(namespace string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q, insecure-skip-tls-verify: true}}]
users: [{name: test, user: {token: test}}]
contexts: [{name: test, context: {cluster: test, user: test, namespace: %q}}]
current-context: test
`, s.http.URL, namespace)
}

// Put adds a pod, or changes it.
func (s *Server) Put(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change := watch.Modified
	if s.pods[pod.UID] == nil {
		change = watch.Added
	}
	s.tell(change, pod)
	s.pods[pod.UID] = s.events[len(s.events)-1].pod
}

// Delete removes a pod.
func (s *Server) Delete(pod *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, pod.UID)
	s.tell(watch.Deleted, pod)
}

func (s *Server) tell(change watch.EventType, pod *corev1.Pod) {
	s.version++
	pod = pod.DeepCopy()
	pod.APIVersion, pod.Kind, pod.ResourceVersion = "v1", "Pod", strconv.Itoa(s.version)
	s.events = append(s.events, event{s.version, change, pod})
	s.wake()
}

func (s *Server) wake() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Cut breaks all logs and watches that are open, as a restart of the API server does.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.cut)
	s.cut = make(chan struct{})
}

// Opened is how many logs were asked for.
func (s *Server) Opened() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened
}

// Log is what a run of a container writes.
type Log struct {
	server *Server
	mu     sync.Mutex
	lines  []line
	ended  bool
	// removed is set once the kubelet has removed the log.
	removed bool
	// Source, if set, returns the next part of the log instead of lines; an empty part is the end.
	Source func(done <-chan struct{}) []byte
}

type line struct {
	at   time.Time
	text []byte
}

// Log is the log of a pod's container; of the run before, if previous.
func (s *Server) Log(pod string, previous bool) *Log {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logOf(pod, previous)
}

func (s *Server) logOf(pod string, previous bool) *Log {
	key := fmt.Sprint(pod, previous)
	if s.logs[key] == nil {
		s.logs[key] = &Log{server: s}
	}
	return s.logs[key]
}

// Restart makes a pod's log that of the run before, and begins a new one.
func (s *Server) Restart(pod string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs[fmt.Sprint(pod, true)] = s.logOf(pod, false)
	delete(s.logs, fmt.Sprint(pod, false))
}

// Say appends a line.
func (l *Log) Say(at time.Time, text string) {
	l.mu.Lock()
	l.lines = append(l.lines, line{at, []byte(at.UTC().Format(time.RFC3339Nano) + " " + text + "\n")})
	l.mu.Unlock()
	l.changed()
}

// End says that the container has ended.
func (l *Log) End() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.changed()
}

// Remove says that the container has ended, and that the kubelet has removed its log: those who read it get the rest, and nobody gets it
// later.
func (l *Log) Remove() {
	l.mu.Lock()
	l.ended, l.removed = true, true
	l.mu.Unlock()
	l.changed()
}

func (l *Log) changed() {
	l.server.mu.Lock()
	l.server.wake()
	l.server.mu.Unlock()
}

// state is what a reader waits on.
func (s *Server) state() (changed, cut <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed, s.cut
}

func (s *Server) list(w http.ResponseWriter, r *http.Request) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	namespace := r.PathValue("namespace")
	if r.URL.Query().Get("watch") != "" {
		s.watch(w, r, namespace, selector)
		return
	}
	s.mu.Lock()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	list.ResourceVersion = strconv.Itoa(s.version)
	for _, pod := range s.pods {
		if pod.Namespace == namespace && selector.Matches(labels.Set(pod.Labels)) {
			list.Items = append(list.Items, *pod)
		}
	}
	s.mu.Unlock()
	answer(list)(w, r)
}

func (s *Server) watch(w http.ResponseWriter, r *http.Request, namespace string, selector labels.Selector) {
	if r.URL.Query().Get("sendInitialEvents") != "" {
		http.Error(w, "not here", http.StatusUnprocessableEntity)
		return
	}
	version, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	w.Header().Set("Content-Type", "application/json")
	flush(w)
	_, cut := s.state()
	for {
		s.mu.Lock()
		changed := s.changed
		var news []event
		for _, e := range s.events {
			if e.version > version && e.pod.Namespace == namespace && selector.Matches(labels.Set(e.pod.Labels)) {
				news = append(news, e)
			}
		}
		version = s.version
		s.mu.Unlock()
		for _, e := range news {
			_ = json.NewEncoder(w).Encode(map[string]any{"type": e.change, "object": e.pod})
		}
		flush(w)
		if !awaitChange(r, changed, cut) {
			return
		}
	}
}

func (s *Server) find(namespace, name string) *corev1.Pod {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, pod := range s.pods {
		if pod.Namespace == namespace && pod.Name == name {
			return pod
		}
	}
	return nil
}

func (s *Server) get(w http.ResponseWriter, r *http.Request) {
	pod := s.find(r.PathValue("namespace"), r.PathValue("name"))
	if pod == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("pods %q not found", r.PathValue("name")))
		return
	}
	answer(pod)(w, r)
}

func (s *Server) podLog(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	if s.find(r.PathValue("namespace"), name) == nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, fmt.Sprintf("pods %q not found", name))
		return
	}
	s.log(w, r, name)
}

func (s *Server) log(w http.ResponseWriter, r *http.Request, name string) {
	query := r.URL.Query()
	s.mu.Lock()
	s.opened++
	log := s.logOf(name, query.Get("previous") == "true")
	cut := s.cut
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain")
	flush(w)
	if log.Source != nil {
		log.pour(w, r)
		return
	}
	log.mu.Lock()
	removed := log.removed
	log.mu.Unlock()
	if removed {
		_, _ = io.WriteString(w, "unable to retrieve container logs for containerd://0123456789")
		return
	}
	stamps, follows := query.Get("timestamps") == "true", query.Get("follow") == "true"
	since, _ := time.Parse(time.RFC3339, query.Get("sinceTime"))
	if seconds, err := strconv.Atoi(query.Get("sinceSeconds")); err == nil {
		since = time.Now().Add(-time.Duration(seconds) * time.Second)
	}
	next := 0
	if tail, err := strconv.Atoi(query.Get("tailLines")); err == nil {
		log.mu.Lock()
		next = max(0, len(log.lines)-tail)
		log.mu.Unlock()
	}
	for {
		changed, _ := s.state()
		log.mu.Lock()
		lines, ended := log.lines[next:], log.ended
		next = len(log.lines)
		log.mu.Unlock()
		if writeLines(w, lines, since, stamps) != nil {
			return
		}
		flush(w)
		if !follows || ended {
			return
		}
		if !awaitChange(r, changed, cut) {
			return
		}
	}
}

// pour writes what the log's source brings.
func (l *Log) pour(w http.ResponseWriter, r *http.Request) {
	for text := l.Source(r.Context().Done()); len(text) > 0 && r.Context().Err() == nil; text = l.Source(r.Context().Done()) {
		if _, err := w.Write(text); err != nil {
			return
		}
	}
}

func writeLines(w http.ResponseWriter, lines []line, since time.Time, stamps bool) error {
	for _, line := range lines {
		text := line.text
		if !stamps {
			_, text, _ = bytes.Cut(text, []byte(" "))
		}
		if line.at.Before(since) {
			continue
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

func answer(object any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(object)
	}
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
}

func flush(w http.ResponseWriter) {
	if f, can := w.(http.Flusher); can {
		f.Flush()
	}
}

// awaitChange waits until something changes. It returns false if the client is gone, and aborts the response if connections
// are cut.
func awaitChange(r *http.Request, changed, cut <-chan struct{}) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-cut:
		panic(http.ErrAbortHandler)
	case <-changed:
		return true
	}
}
