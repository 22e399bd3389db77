package jobs

import "opendatahub.io/mpijob/internal/phrase"

// DidYouMean returns "; did you mean A or B?", or nothing without names.
func DidYouMean(similar []string) string { return phrase.DidYouMean(similar) }

// Similar returns at most three names that a user may have meant who wrote another, the most similar first.
func Similar(written string, names []string) []string { return phrase.Similar(written, names) }
