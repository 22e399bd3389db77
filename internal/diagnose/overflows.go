package diagnose

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"opendatahub.io/mpijob/internal/codes"
)

var (
	// longNumber is an integer of an error's text that is no part of another number or word.
	longNumber = regexp.MustCompile(`(?:^|[\s(=:,\[<>])(-?\d{7,10})(?:\.?$|\.?\s|[),:;\]])`)
	// isCount is a word for a count, a sum or an index in an error or in the line that raised it, and isNoCount one for another number.
	isCount   = regexp.MustCompile(`(?i)\b(?:n|n_\w+|(?-i:n(?:um)?[A-Z]\w*)|nums?|num_\w+|number of|\w*count\w*|total\w*|\w*sum|sizes?|\w*length|len|tokens|samples|rows|items|elements|entries|\w*bytes|offsets?|displacement|ind(?:ex|ices)|positions?|steps|pairs|points|cells|particles|edges|words|dimensions?|nnz)\b`)
	isNoCount = regexp.MustCompile(`(?i)\b(?:errno|(?:exit |error |return )?code|status|hash|seed|handle|address|id|timestamp|time|temperature|loss|energy|tag)\b[^\d-]{0,20}$|checksum|\bcrc`)
	// beforeBound and afterBound are what is next to a bound in a text about the values that are allowed.
	beforeBound = regexp.MustCompile(`(?:<=?|>=?|\[ *-?\d+ *,|\b(?:in|of) (?:the )?range \[?|\b(?:between|from|than|equal to)(?: -?\d+ (?:and|to))?) *$`)
	afterBound  = regexp.MustCompile(`^ *(?:<|>|, *-?\d+ *\]|(?:and|to) -?\d+\b)`)
)

const (
	// wrap is the number of values of a 32-bit integer, and smallest the absolute value of a number from which it is unlikely to be meant.
	wrap     = 1 << 32
	smallest = 1 << 20
)

// hintOverflow adds a hint to the remedies for an error with a number that a count or a sum is only after an overflow: a negative one of 32 bits that is far
// from 0, or one just below 2^32. It is no cause: the number may be meant.
func hintOverflow(entry codes.Entry, figures map[string]string) codes.Entry {
	text := figures["wholeError"]
	if text == "" || len(entry.Remedies) == 0 {
		return entry
	}
	for _, at := range longNumber.FindAllStringSubmatchIndex(text, -1) {
		number, err := strconv.ParseInt(text[at[2]:at[3]], 10, 64)
		before := text[:at[2]]
		isBound := beforeBound.MatchString(before) || afterBound.MatchString(text[at[3]:])
		if err != nil || isBound || isNoCount.MatchString(before) || !isCount.MatchString(text+"\n"+figures["ownSource"]) {
			continue
		}
		meant := ""
		switch {
		case number >= -wrap/2 && number <= -smallest:
			meant = fmt.Sprintf("%d + %d = %d", number, wrap, number+wrap)
		case number >= wrap-smallest && number < wrap:
			meant = fmt.Sprintf("%d - %d = %d, a negative number that was taken as an unsigned one", number, wrap, number-wrap)
		default:
			continue
		}
		figures["wrapped"], figures["unwrapped"] = strconv.FormatInt(number, 10), meant
		entry.Remedies = slices.Insert(slices.Clone(entry.Remedies), 1, codes.OverflowHint)
		return entry
	}
	return entry
}
