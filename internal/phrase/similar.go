package phrase

import (
	"cmp"
	"slices"
	"strings"
)

// DidYouMean returns "; did you mean A or B?", or nothing without names.
func DidYouMean(similar []string) string {
	if len(similar) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(similar, " or ") + "?"
}

// Similar returns at most three names that a user may have meant who wrote another, the most similar first.
func Similar(written string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, name := range names {
		d := distance(strings.ToLower(written), strings.ToLower(name))
		begins := len(written) > 1 && (strings.HasPrefix(name, written) || strings.HasPrefix(written, name))
		if d <= 1+min(len(written), len(name))/4 || begins {
			near = append(near, candidate{name, d})
		}
	}
	slices.SortFunc(near, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), strings.Compare(a.name, b.name))
	})
	near = slices.CompactFunc(near, func(a, b candidate) bool { return a.name == b.name })
	var found []string
	for _, c := range near[:min(3, len(near))] {
		if c.distance > near[0].distance && !strings.HasPrefix(c.name, written) {
			break
		}
		found = append(found, c.name)
	}
	return found
}

// distance is the number of letters to insert, remove, replace or swap with a neighbour.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// Misspelled returns the name of which another one is probably a misspelling, by a stricter measure than Similar's: it is the same without
// case and underscores, or one letter differs, two in a long name. It returns "" if there is none, several, or the name itself is one of them.
func Misspelled(written string, names []string) string {
	const short, long = 4, 12
	if len(written) < short || slices.Contains(names, written) {
		return ""
	}
	least, nearest := 2, ""
	if len(written) >= long {
		least = 3
	}
	for _, name := range names {
		switch d := distance(bare(written), bare(name)); {
		case d < least:
			least, nearest = d, name
		case d == least && name != nearest:
			nearest = ""
		}
	}
	return nearest
}

// bare returns a name in lower case without underscores.
func bare(name string) string { return strings.ToLower(strings.ReplaceAll(name, "_", "")) }
