package e2e

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestImageVolume checks what the cluster itself must be able to do so that jobs need no init container: a pod mounts
// the agent's image as a volume (KEP-4639) and runs the agent from it, as any user, with a read-only root, and admitted
// by Pod Security's restricted profile.
func TestImageVolume(t *testing.T) {
	parallel(t, 1)
	namespace := newNamespace(t)
	security := func(user int64) *corev1.SecurityContext {
		context := restricted()
		context.RunAsUser, context.ReadOnlyRootFilesystem = &user, new(true)
		return context
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "image-volume"},
		Spec: corev1.PodSpec{
			RestartPolicy:   corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{FSGroup: new(int64(1000650000))},
			Volumes: []corev1.Volume{{Name: "agent", VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{
				Reference:  cmp.Or(os.Getenv("AGENT_IMG"), "odh/mpijob-agent:dev"),
				PullPolicy: corev1.PullIfNotPresent,
			}}}},
		},
	}
	for _, user := range []int64{1000, 1000650000} {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{
			Name: fmt.Sprintf("user-%d", user), Image: image, ImagePullPolicy: corev1.PullIfNotPresent, SecurityContext: security(user),
			Command:      []string{"sh", "-c", "id -u; /opt/agent/mpi-agent help; touch /opt/agent/new || echo read-only"},
			VolumeMounts: []corev1.VolumeMount{{Name: "agent", MountPath: "/opt/agent"}},
		})
	}
	create(t, pod)
	if pod.Spec.Volumes[0].Image == nil {
		t.Skip("SKIPPED: this API server drops image volumes, as Kubernetes before 1.35 by default")
	}
	eventually(t, "the pod has run", time.Minute, func() error {
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(pod), pod); err != nil {
			return err
		}
		if pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("its status is %+v", pod.Status)
		}
		return nil
	})
	for _, container := range pod.Spec.Containers {
		stream, err := logs.CoreV1().Pods(namespace).GetLogs(pod.Name, &corev1.PodLogOptions{Container: container.Name}).Stream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(stream)
		_ = stream.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{fmt.Sprint(*container.SecurityContext.RunAsUser), "mpi-agent starts the ranks of an MPI job", "read-only"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("container %s printed %q, want %q in it", container.Name, text, want)
			}
		}
	}
}
