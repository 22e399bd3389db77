package process

import (
	"os"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	tail := " S 1 10 10 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 20 18446744073709551615"
	tests := map[string]struct {
		stat  string
		state string
		ticks uint64
		fails bool
	}{
		"plain":                     {stat: "10 (etcd)" + tail, state: "S", ticks: 98765},
		"name with a blank":         {stat: "10 (tmux: server)" + tail, state: "S", ticks: 98765},
		"name that looks like more": {stat: "10 (a) S 1 (b)" + tail, state: "S", ticks: 98765},
		"zombie":                    {stat: "10 (etcd)" + strings.Replace(tail, "S", "Z", 1), state: "Z", ticks: 98765},
		"cut off":                   {stat: "10 (etcd) S 1 10", fails: true},
		"empty":                     {stat: "", fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			state, ticks, err := parseStat(test.stat)
			if (err != nil) != test.fails {
				t.Fatalf("error %v, want one: %v", err, test.fails)
			}
			if state != test.state || ticks != test.ticks {
				t.Errorf("got %q, %d; want %q, %d", state, ticks, test.state, test.ticks)
			}
		})
	}
}

func TestIdentityOfAnotherProcessWithTheSameIDIsNotAlive(t *testing.T) {
	own, err := Identify(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	earlier, rebooted := own, own
	earlier.StartTicks--
	rebooted.Boot = "another"
	for name, test := range map[string]struct {
		identity Identity
		alive    bool
	}{
		"this process":                   {own, true},
		"an earlier one of the same id":  {earlier, false},
		"one of before a reboot":         {rebooted, false},
		"none":                           {Identity{}, false},
		"a process group, by a slip":     {Identity{PID: -1, Boot: own.Boot}, false},
		"an id that nothing can ever be": {Identity{PID: 1 << 30, Boot: own.Boot}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.identity.Alive(); got != test.alive {
				t.Errorf("alive is %v, want %v", got, test.alive)
			}
		})
	}
}
