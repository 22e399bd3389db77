package diagnose

import (
	"regexp"
	"slices"
	"strconv"

	"opendatahub.io/mpijob/internal/agentapi"
)

// doings are the ranks of a job that make no progress, by what they do, as the launcher's agent lists them.
type doings struct {
	ranks map[agentapi.Doing][]int
	// cut is set if the agent named only some of those that do the same.
	cut bool
}

// doingList is one of the agent's lists, such as "polling: 0, 2, 3 and 12 more".
var doingList = regexp.MustCompile(`(?:^|; )(busy|sleeping|blocked|polling): (\d+(?:, \d+)*)( and \d+ more)?`)

// doingsIn reads the lists in what an agent wrote about ranks that make no progress.
func doingsIn(text string) doings {
	d := doings{ranks: map[agentapi.Doing][]int{}}
	for _, found := range doingList.FindAllStringSubmatch(text, -1) {
		d.ranks[agentapi.Doing(found[1])] = numbersIn(found[2])
		d.cut = d.cut || found[3] != ""
	}
	return d
}

// listed are the ranks that are named, whatever they do, sorted.
func (d doings) listed() (all []int) {
	for _, ranks := range d.ranks {
		all = append(all, ranks...)
	}
	slices.Sort(all)
	return all
}

// late returns the ranks that are named as sleeping or blocked, without those whose program has ended, which the agent names as in "ranks 1, 2, 3,
// 4 and 59 more". known is false if such a rank may be one of those that it does not name.
func (d doings) late(ended string) (ranks []int, known bool) {
	left, known := numbersIn(andMore.ReplaceAllString(ended, "")), true
	for _, rank := range slices.Concat(d.ranks[agentapi.Sleeping], d.ranks[agentapi.Blocked]) {
		if slices.Contains(left, rank) {
			continue
		}
		ranks = append(ranks, rank)
		known = known && (!andMore.MatchString(ended) || rank < slices.Max(left))
	}
	return ranks, known
}

// does returns what a rank does that sleeps or is blocked, in a sentence.
func (d doings) does(rank int) string {
	if slices.Contains(d.ranks[agentapi.Sleeping], rank) {
		return sleeps
	}
	return isBlocked
}

// andMore is the number of ranks that an agent does not name.
var andMore = regexp.MustCompile(` and \d+ more`)

// numbersIn returns the numbers in a list of ranks.
func numbersIn(list string) (numbers []int) {
	for _, word := range listedRank.FindAllString(list, -1) {
		if number, err := strconv.Atoi(word); err == nil {
			numbers = append(numbers, number)
		}
	}
	return numbers
}
