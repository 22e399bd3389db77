package logs

import "strings"

// hint tells cheaply which lines may contain a certain secret. Most lines contain none, and regular expressions would take
// longer than everything else that happens to a line.
type hint struct {
	// words are in lower case. A line with none of them does not match.
	words []word
	// confirm reports whether a line in lower case, with one of the words, may match; nil if all may.
	confirm func(lowered string) bool
}

func (h hint) matches(line *lowered) bool {
	return line.containsAny(h.words) && (h.confirm == nil || h.confirm(line.text))
}

// has is the hint that one of some words is in a line. A word has two bytes or more.
func has(texts ...string) hint { return hint{words: newWords(texts...)} }

// lowered is a line in lower case that is searched for many words. It notes which pairs of bytes follow each other, so that
// most words are known to be absent without a search.
type lowered struct {
	text string
	// pairs is a set of hashed pairs: a pair that is not in it is not in the text.
	pairs [pairBits / 64]uint64
}

const pairBits = 4096

func (l *lowered) set(line string) {
	text := strings.ToLower(line)
	l.text = text
	for i := 1; i < len(text); i++ {
		pair := hashPair(text[i-1], text[i])
		l.pairs[pair/64] |= 1 << (pair % 64)
	}
}

// hashPair returns a number below pairBits.
func hashPair(a, b byte) uint16 { return (uint16(a)<<6 ^ uint16(b)) % pairBits }

func (l *lowered) hasPair(pair uint16) bool { return l.pairs[pair/64]&(1<<(pair%64)) != 0 }

// word is a text to search for.
type word struct {
	text string
	// first and last are its first and its last pair of bytes, hashed.
	first, last uint16
}

func newWords(texts ...string) []word {
	words := make([]word, len(texts))
	for i, text := range texts {
		end := len(text)
		words[i] = word{text, hashPair(text[0], text[1]), hashPair(text[end-2], text[end-1])}
	}
	return words
}

func (l *lowered) containsAny(words []word) bool {
	for i := range words {
		w := &words[i]
		if l.hasPair(w.first) && l.hasPair(w.last) && strings.Contains(l.text, w.text) {
			return true
		}
	}
	return false
}

// secretWords are what a secret's name ends with; the first ones, so many as endings, only after something else.
var secretWords = []string{"key", "id", "word", "wd", "pass", "phrase", "passcode", "string", "secret", "token", "auth", "authorization", "credential", "credentials", "cred", "creds", "sas"}

const endings = 8

// hasSetting is the hint that a word with which a secret's name may end is set to something. Some of these words mean
// nothing by themselves.
func hasSetting() hint {
	return hint{newWords(secretWords...), func(lowered string) bool {
		for i, word := range secretWords {
			for at := 0; ; at += len(word) {
				next := strings.Index(lowered[at:], word)
				if next < 0 {
					break
				}
				at += next
				set := strings.TrimLeft(lowered[at+len(word):], "\\\"' \t")
				isSet := set != "" && (set[0] == ':' || set[0] == '=')
				if isSet && (i >= endings || at > 0 && isNameByte(lowered[at-1])) {
					return true
				}
			}
		}
		return false
	}}
}

// hasFlag is the hint that there is a flag, and a word with which a secret's name may end.
func hasFlag() hint {
	return hint{newWords(secretWords...), func(lowered string) bool {
		return strings.HasPrefix(lowered, "-") || strings.Contains(lowered, " -") || strings.Contains(lowered, "\"-") ||
			strings.Contains(lowered, "'-") || strings.Contains(lowered, "[-") || strings.Contains(lowered, ",-")
	}}
}
