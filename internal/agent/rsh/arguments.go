package rsh

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// target is what an ssh command line asks for.
type target struct {
	host string
	// port is 0 where none was asked for.
	port int
	// command is for a shell; empty asks for an interactive shell.
	command string
	// identity is a file with another key than the job's; empty: the job's.
	identity string
	// noInput is -n: the command reads nothing.
	noInput bool
	// anyHostKey is StrictHostKeyChecking=no, said by the user.
	anyHostKey bool
	// wait is ConnectTimeout, 0 where none was asked for.
	wait time.Duration
	// version is -V: say which ssh this is and do nothing.
	version bool
}

// Options of ssh(1), OpenSSH 9. Those without a meaning here are accepted and have none: terminals, forwarding,
// multiplexing and configuration files belong to people, not to ranks.
const (
	flagsAlone    = "46AaCfGgKkMNnqsTtVvXxYy"
	flagsWithWord = "BbcDEeFIiJLlmOoPpQRSWw"
)

// parseSSH reads an ssh command line, without the program's name. As with ssh(1), options may also follow the host, where horovodrun
// writes them; from the first other word on, or after --, everything is the command: words are joined by spaces, and a shell reads
// them again.
func parseSSH(args []string) (target, error) {
	var t target
	ended := false
	for i := 0; i < len(args); i++ {
		word := args[i]
		switch {
		case word == "--" && !ended:
			ended = true
		case !ended && len(word) > 1 && word[0] == '-':
			taken, err := t.flags(word[1:], args[i+1:])
			if err != nil {
				return t, err
			}
			i += taken
		case t.host == "":
			if err := t.setHost(word); err != nil {
				return t, err
			}
		default:
			t.command = strings.Join(args[i:], " ")
			return t, nil
		}
	}
	if t.host == "" && !t.version {
		return t, fmt.Errorf("no host given; usage: ssh [options] host [command]")
	}
	return t, nil
}

// flags reads a word of flags such as xnp2222, and returns how many of the following words are its values.
func (t *target) flags(word string, rest []string) (taken int, err error) {
	for i, flag := range word {
		switch {
		case strings.ContainsRune(flagsAlone, flag):
			t.noInput = t.noInput || flag == 'n' || flag == 'f'
			t.version = t.version || flag == 'V'
		case strings.ContainsRune(flagsWithWord, flag):
			value := word[i+1:]
			if value == "" {
				if len(rest) == 0 {
					return 0, fmt.Errorf("option -%c needs a value", flag)
				}
				value, taken = rest[0], 1
			}
			return taken, t.option(flag, value)
		default:
			return 0, fmt.Errorf("unknown option -%c in %q", flag, "-"+word)
		}
	}
	return 0, nil
}

func (t *target) option(flag rune, value string) error {
	switch flag {
	case 'p':
		return t.setPort(value)
	case 'i':
		t.identity = value
	case 'o':
		return t.setting(value)
	}
	return nil
}

// setting reads the value of -o, Key=Value or "Key Value". Keys are written in any case, as in ssh_config(5).
func (t *target) setting(text string) error {
	key, value, found := strings.Cut(text, "=")
	if !found {
		key, value, _ = strings.Cut(strings.TrimSpace(text), " ")
	}
	value = strings.TrimSpace(value)
	switch strings.ToLower(strings.TrimSpace(key)) {
	case "port":
		return t.setPort(value)
	case "identityfile":
		t.identity = value
	case "stricthostkeychecking":
		t.anyHostKey = strings.EqualFold(value, "no") || strings.EqualFold(value, "off")
	case "connecttimeout":
		seconds, err := strconv.Atoi(value)
		if err != nil || seconds < 0 {
			return fmt.Errorf("ConnectTimeout %q is not a number of seconds", value)
		}
		t.wait = time.Duration(seconds) * time.Second
	}
	return nil
}

func (t *target) setPort(value string) error {
	port, err := strconv.Atoi(value)
	if err != nil || port < 1 || port > 65535 {
		return fmt.Errorf("port %q is not a number from 1 to 65535", value)
	}
	t.port = port
	return nil
}

// setHost reads [user@]host or ssh://[user@]host[:port]. The user is nobody's concern: ranks run as the pod's.
func (t *target) setHost(word string) error {
	rest, isURL := strings.CutPrefix(word, "ssh://")
	if _, host, found := strings.Cut(rest, "@"); found {
		rest = host
	}
	if host, port, found := strings.Cut(rest, ":"); isURL && found {
		rest = host
		if err := t.setPort(port); err != nil {
			return err
		}
	}
	if rest == "" {
		return fmt.Errorf("host %q is empty", word)
	}
	t.host = rest
	return nil
}
