package agent

import (
	"slices"
	"testing"
)

func TestOrder(t *testing.T) {
	contestants := []contestant{{name: Ours}, {name: Before}, {name: Floor}}
	tests := map[string]struct {
		bout bout
		turn int
		want []string
	}{
		"the first turn":             {bout: bout{floor: true}, turn: 0, want: []string{Ours, Before, Floor}},
		"the second turn is reverse": {bout: bout{floor: true}, turn: 1, want: []string{Floor, Before, Ours}},
		"the third turn":             {bout: bout{floor: true}, turn: 2, want: []string{Ours, Before, Floor}},
		"without the floor":          {turn: 0, want: []string{Ours, Before}},
		"reverse without the floor":  {turn: 1, want: []string{Before, Ours}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range test.bout.order(test.turn, contestants) {
				got = append(got, c.name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the order is %v, want %v", got, test.want)
			}
		})
	}
}

func TestPercentile(t *testing.T) {
	values := make([]float64, 200)
	for i := range values {
		values[i] = float64(200 - i)
	}
	for percent, want := range map[int]float64{0: 1, 50: 101, 99: 199} {
		if got := percentile(values, percent); got != want {
			t.Errorf("percentile %d is %v, want %v", percent, got, want)
		}
	}
}

// TestPeers compares the columns of the table with the contestants that take part. The agents are replaced by true, which installs
// nothing.
func TestPeers(t *testing.T) {
	tests := map[string]struct {
		before string
		agents map[string]string
		want   []string
	}{
		"beside OpenSSH":             {agents: map[string]string{Ours: "true"}, want: []string{Ours, OpenSSH, Floor}},
		"beside an earlier commit's": {before: "HEAD~5", agents: map[string]string{Ours: "true", Before: "true"}, want: []string{Ours, Before, Floor}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			contestants, err := meet(t.Context(), test.agents, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range contestants {
				got = append(got, c.name)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("the contestants are %v, want %v", got, test.want)
			}
			if columns := append([]string{Ours}, Peers(test.before)...); !slices.Equal(got, columns) {
				t.Errorf("the columns are %v, want %v", columns, got)
			}
		})
	}
}
