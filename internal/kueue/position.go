package kueue

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"opendatahub.io/mpijob/internal/jobstate"
)

// Position is a Workload's position among those that wait, counted from 0 (kueue/apis/visibility/v1beta2).
type Position struct {
	InQueue        int32 `json:"positionInLocalQueue"`
	InClusterQueue int32 `json:"positionInClusterQueue"`
}

// AddTo adds the position, if it is known, to the state of a job that waits.
func (p *Position) AddTo(state *jobstate.QueueState) {
	if p != nil {
		state.Position, state.Total = p.InQueue+1, p.InClusterQueue+1
	}
}

// PendingPath returns the path of Kueue's visibility API that lists the Workloads that wait in a LocalQueue.
func PendingPath(namespace, queue string) []string {
	return []string{"/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces", namespace, "localqueues", queue, "pendingworkloads"}
}

// ParsePositions reads the answer to PendingPath: the positions of Workloads by name.
func ParsePositions(data []byte) (map[string]Position, error) {
	var waiting struct {
		Items []struct {
			Metadata metav1.ObjectMeta `json:"metadata"`
			Position `json:",inline"`
		} `json:"items"`
	}
	if err := json.Unmarshal(data, &waiting); err != nil {
		return nil, err
	}
	positions := make(map[string]Position, len(waiting.Items))
	for _, item := range waiting.Items {
		positions[item.Metadata.Name] = item.Position
	}
	return positions, nil
}
