package dashboard

import "slices"

// keys returns the keys of a map, sorted.
func keys[V any](set map[string]V) []string {
	all := make([]string, 0, len(set))
	for key := range set {
		all = append(all, key)
	}
	slices.Sort(all)
	return all
}

// orEmpty returns the values as a slice that is an empty list in JSON, not null.
func orEmpty[T any](values []T) []T {
	if values == nil {
		return []T{}
	}
	return values
}

// unique returns texts without repetitions, in the same order.
func unique(texts []string) []string {
	seen := map[string]bool{}
	all := []string{}
	for _, text := range texts {
		if !seen[text] {
			seen[text] = true
			all = append(all, text)
		}
	}
	return all
}
