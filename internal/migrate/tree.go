package migrate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// tree is an object of JSON.
type tree = map[string]any

// take removes the value at a path, and returns it.
func take(from tree, path ...string) (any, bool) {
	parent, last := from, path[len(path)-1]
	for _, name := range path[:len(path)-1] {
		next, is := parent[name].(tree)
		if !is {
			return nil, false
		}
		parent = next
	}
	value, found := parent[last]
	delete(parent, last)
	return value, found
}

// drop removes fields of an object that need no description.
func drop(from tree, names ...string) {
	for _, name := range names {
		delete(from, name)
	}
}

// object returns the object at a path, which is created if necessary.
func object(of tree, path ...string) tree {
	for _, name := range path {
		next, is := of[name].(tree)
		if !is {
			next = tree{}
			of[name] = next
		}
		of = next
	}
	return of
}

// look returns the object at a path, or an empty one.
func look(of tree, path ...string) tree {
	for _, name := range path {
		next, is := of[name].(tree)
		if !is {
			return tree{}
		}
		of = next
	}
	return of
}

// entries returns the objects in a list.
func entries(list any) []tree {
	all, _ := list.([]any)
	var found []tree
	for _, entry := range all {
		if one, is := entry.(tree); is {
			found = append(found, one)
		}
	}
	return found
}

// texts returns the strings in a list.
func texts(list any) []string {
	all, _ := list.([]any)
	var found []string
	for _, entry := range all {
		if text, is := entry.(string); is {
			found = append(found, text)
		}
	}
	return found
}

func anys[T any](list []T) []any {
	all := make([]any, len(list))
	for i, entry := range list {
		all[i] = entry
	}
	return all
}

// set sets a field, unless the value is empty.
func set(in tree, name string, value any) {
	switch v := value.(type) {
	case nil:
		return
	case tree:
		if len(v) == 0 {
			return
		}
	case []any:
		if len(v) == 0 {
			return
		}
	case string:
		if v == "" {
			return
		}
	}
	in[name] = value
}

// leaves returns the paths of all non-empty values, sorted, as users write fields.
func leaves(value any, at string) []string {
	switch v := value.(type) {
	case tree:
		var all []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			path := name
			if at != "" {
				path = at + "." + name
			}
			all = append(all, leaves(v[name], path)...)
		}
		return all
	case []any:
		var all []string
		for i, entry := range v {
			all = append(all, leaves(entry, at+"["+strconv.Itoa(i)+"]")...)
		}
		return all
	case nil:
		return nil
	}
	return []string{at}
}

// clone returns a deep copy.
func clone(value any) any {
	switch v := value.(type) {
	case tree:
		copied := make(tree, len(v))
		for name, entry := range v {
			copied[name] = clone(entry)
		}
		return copied
	case []any:
		copied := make([]any, len(v))
		for i, entry := range v {
			copied[i] = clone(entry)
		}
		return copied
	}
	return value
}

// same reports whether two values have the same text.
func same(a, b any) bool { return fmt.Sprint(a) == fmt.Sprint(b) }
