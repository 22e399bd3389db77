package mpi

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Link is a link to a page about a job, such as its run in MLflow.
type Link struct {
	// Title names the page.
	Title string
	// Template is the page's URL with placeholders (see CheckLinkTemplate).
	Template string
}

// Limits of links.
const (
	MaxLinks         = 4
	MaxLinkTitle     = 20
	MaxLinkURL       = 1024
	maxLinkTemplate  = MaxLinkURL / 2
	linksDescription = "must be links such as TensorBoard=https://tensorboard.example.com/{name}, separated by blanks"
)

var (
	linkTitle = regexp.MustCompile(fmt.Sprintf(`^[A-Za-z0-9][A-Za-z0-9._-]{0,%d}$`, MaxLinkTitle-1))
	linkField = regexp.MustCompile(`\{(\w*)\}`)
	// linkFields are the placeholders of a template.
	linkFields = []string{"namespace", "kind", "name", "uid", "start", "end", "startMs", "endMs"}
)

// CheckLinkTemplate checks a template of links of at most so many characters: an http or https URL with the placeholders {namespace},
// {kind}, {name} and {uid} of the job, {start} and {end} in RFC 3339, and {startMs} and {endMs} in milliseconds since 1970. The last four
// are those of the job, with "now" as the end of one that has not ended. Other braces are part of the URL, such as those of a selector
// {app="x"}.
func CheckLinkTemplate(template string, most int) error {
	for _, found := range linkField.FindAllStringSubmatch(template, -1) {
		if !slices.Contains(linkFields, found[1]) {
			return fmt.Errorf("%q has the unknown placeholder %s; use {%s}", template, found[0], strings.Join(linkFields, "}, {"))
		}
	}
	sample, err := url.Parse(linkField.ReplaceAllString(template, "x"))
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a URL: %w", template, err)
	case sample.Scheme != "https" && sample.Scheme != "http" || sample.Host == "":
		return fmt.Errorf("%q is not a URL of a web page; start it with https://", template)
	case len(template) > most:
		return fmt.Errorf("the URL has %d characters; use at most %d", len(template), most)
	}
	return nil
}

// ExpandLink returns a template with values for its placeholders, which are escaped for a query.
func ExpandLink(template string, values map[string]string) string {
	return linkField.ReplaceAllStringFunc(template, func(found string) string { return url.QueryEscape(values[found[1:len(found)-1]]) })
}

// ParseLinks reads links that are separated by blanks: TITLE=URL, where the URL is a template (see CheckLinkTemplate) without a password.
func ParseLinks(text string) ([]Link, error) {
	var links []Link
	for word := range strings.FieldsSeq(text) {
		title, template, _ := strings.Cut(word, "=")
		if !linkTitle.MatchString(title) {
			return nil, fmt.Errorf("%q has no valid title; write TITLE=URL with a title of at most %d letters, digits, '.', '_' and '-'", word, MaxLinkTitle)
		}
		if err := CheckLinkTemplate(template, maxLinkTemplate); err != nil {
			return nil, fmt.Errorf("link %s: %w", title, err)
		}
		if parsed, err := url.Parse(linkField.ReplaceAllString(template, "x")); err == nil && parsed.User != nil {
			return nil, fmt.Errorf("link %s has a user name or password, which everyone who may read the job's report would see; remove it", title)
		}
		if slices.ContainsFunc(links, func(l Link) bool { return strings.EqualFold(l.Title, title) }) {
			return nil, fmt.Errorf("link %s is there twice", title)
		}
		links = append(links, Link{Title: title, Template: template})
	}
	if len(links) > MaxLinks {
		return nil, fmt.Errorf("there are %d links; use at most %d", len(links), MaxLinks)
	}
	return links, nil
}

// ParseJobLinks reads AnnotationLinks. It returns none if the annotation is missing or invalid.
func ParseJobLinks(annotations map[string]string) ([]Link, field.ErrorList) {
	text := annotations[AnnotationLinks]
	links, err := ParseLinks(text)
	if err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(AnnotationLinks), text, fmt.Sprintf("%s: %v", linksDescription, err))}
	}
	return links, nil
}
