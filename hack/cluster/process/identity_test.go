package process

import (
	"os"
	"strings"
	"testing"
)

func TestParseStat(t *testing.T) {
	tail := " S 1 10 10 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 98765 1000 20 18446744073709551615"
	runs := stat{session: 10, startTicks: 98765}
	ended := stat{session: 10, startTicks: 98765, ended: true}
	tests := map[string]struct {
		text  string
		want  stat
		fails bool
	}{
		"plain":                     {text: "10 (etcd)" + tail, want: runs},
		"name with a blank":         {text: "10 (tmux: server)" + tail, want: runs},
		"name that looks like more": {text: "10 (a) S 1 (b)" + tail, want: runs},
		"zombie":                    {text: "10 (etcd)" + strings.Replace(tail, "S", "Z", 1), want: ended},
		"zombie with a live thread": {text: "10 (etcd)" + strings.NewReplacer("S", "Z", " 20 0 1 ", " 20 0 2 ").Replace(tail), want: runs},
		"cut off":                   {text: "10 (etcd) S 1 10", fails: true},
		"empty":                     {text: "", fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(test.text)
			if (err != nil) != test.fails {
				t.Fatalf("error %v, want one: %v", err, test.fails)
			}
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
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
