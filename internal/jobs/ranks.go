package jobs

import (
	"context"
	"fmt"
	"path"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/json"

	"opendatahub.io/mpijob/internal/kinds/trainjob"
	"opendatahub.io/mpijob/internal/mpi"
	"opendatahub.io/mpijob/internal/phrase"
)

// followRanks changes the number of ranks in the command of a clone as the number of its slots changes, if the original's command starts
// as many ranks as the original has slots. It returns a note about a number that it keeps. A command that was changed stays as it is.
func (c *Client) followRanks(ctx context.Context, original, clone *unstructured.Unstructured) (note string) {
	words := FromObject(clone).Summary().Command
	if !slices.Equal(words, FromObject(original).Summary().Command) || sizedAlike(original, clone) {
		return ""
	}
	kept, at := startedRanks(words)
	if kept == 0 {
		return ""
	}
	still := "the command still starts " + phrase.Count(kept, "rank")
	before, err := c.ranksOf(ctx, original)
	if err != nil {
		return fmt.Sprintf("%s, because the number of slots is unknown: %v", still, err)
	}
	after, err := c.ranksOf(ctx, clone)
	switch {
	case err != nil:
		return fmt.Sprintf("%s, because the number of slots is unknown: %v", still, err)
	case before == after:
		return ""
	case at >= 0 && kept == before:
		words = slices.Clone(words)
		words[at] = strconv.Itoa(after)
		setWords(clone, words)
		return ""
	}
	return fmt.Sprintf("%s, and the job now has %s instead of %d; change the command to use them all", still, phrase.Count(after, "slot"), before)
}

// sizedAlike reports whether the fields of two TrainJobs that determine their size are the same.
func sizedAlike(a, b *unstructured.Unstructured) bool {
	if a.GetKind() != trainjob.Kind {
		return false
	}
	for _, path := range [][]string{{"runtimeRef"}, {"trainer", "numNodes"}, {"trainer", "numProcPerNode"}, {"trainer", "resourcesPerNode"}} {
		path = append([]string{"spec"}, path...)
		was, _, _ := unstructured.NestedFieldNoCopy(a.Object, path...)
		is, _, _ := unstructured.NestedFieldNoCopy(b.Object, path...)
		if !reflect.DeepEqual(was, is) {
			return false
		}
	}
	return true
}

// ranksOf returns the number of slots of a job's hosts.
func (c *Client) ranksOf(ctx context.Context, job *unstructured.Unstructured) (int, error) {
	if job.GetKind() != trainjob.Kind {
		return editorFor(job.GetKind()).RankLayout(job).Ranks, nil
	}
	data, err := json.Marshal(job.Object)
	if err != nil {
		return 0, fmt.Errorf("encode job: %w", err)
	}
	typed, err := trainjob.Decode(data)
	if err != nil {
		return 0, err
	}
	used, err := trainjob.LoadRuntime(ctx, c.api, typed)
	switch {
	case err != nil:
		return 0, err
	case used == nil:
		return 0, fmt.Errorf("the runtime %s does not exist", typed.Spec.RuntimeRef.Name)
	case !used.IsMPI():
		return 0, nil
	}
	return int(trainjob.Convert(typed, *used).Ranks()), nil
}

// switches are flags of mpirun that have no value.
var switches = []string{
	"--tag-output", "-tag-output", "--prepend-rank", "-prepend-rank", "-l", "--oversubscribe", "-oversubscribe", "--allow-run-as-root",
	"-allow-run-as-root", "--report-bindings", "-report-bindings", "--display-map", "-display-map", "-v", "--verbose", "-verbose",
}

// startedRanks returns the number of ranks that a command starts, or 0 if that is unknown, and the index of that number if the command
// is MPI's launcher with one program, else -1.
func startedRanks(words []string) (ranks, at int) {
	at = rankCount(words)
	if at < 0 {
		ranks, _ = strconv.Atoi(scriptRanks(words)) // digits or nothing
		return ranks, -1
	}
	ranks, _ = strconv.Atoi(words[at])
	for rest := words; ; {
		next := slices.Index(rest, ":")
		if next < 0 {
			return ranks, at
		}
		rest = slices.Concat(words[:1], rest[next+1:])
		of := rankCount(rest)
		if of < 0 {
			return 0, -1
		}
		more, _ := strconv.Atoi(rest[of])
		ranks, at = ranks+more, -1
	}
}

// rankCount returns the index of the number of ranks in a command of MPI's launcher; -1 if it has none, or is a script.
func rankCount(words []string) int {
	if len(words) == 0 || !slices.Contains(mpi.Launchers, path.Base(words[0])) {
		return -1
	}
	for i := 1; i+1 < len(words); i++ {
		word := words[i]
		switch {
		case slices.Contains(rankFlags, word):
			if _, err := strconv.Atoi(words[i+1]); err != nil {
				return -1
			}
			return i + 1
		case !strings.HasPrefix(word, "-"):
			return -1 // the program
		case slices.Contains(switches, word), strings.Contains(word, "="), strings.HasPrefix(words[i+1], "-"):
		default:
			i++ // its value
			if word == "--mca" || word == "-mca" || word == "-genv" || word == "-env" {
				i++
			}
		}
	}
	return -1
}

// ranksInScript is the number of ranks that a script starts.
var ranksInScript = regexp.MustCompile(`(?:` + strings.Join(mpi.Launchers, "|") + `)\s[^;&|\n]*?\s?--?np?[ =](\d+)\s`)

// scriptRanks returns the number of ranks that the script of a shell starts; empty for none.
func scriptRanks(words []string) string {
	if len(words) < 3 || !StartsRanks(words) {
		return ""
	}
	for _, word := range words[1:] {
		if found := ranksInScript.FindStringSubmatch(word); found != nil {
			return found[1]
		}
	}
	return ""
}
