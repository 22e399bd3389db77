package codes

import "strings"

// sources is the folder of the documentation's pages in the repository, as GitHub shows them.
const sources = "https://github.com/opendatahub-io/mpijob/blob/main/docs"

// PageURL returns the address of the documentation of a code: its section in docs/troubleshooting.md, or "" if it has none.
// site is the address of the documentation site, or "" for the pages in the repository.
func PageURL(site string, code Code) string {
	if !IsExplained(code) {
		return ""
	}
	page := sources + "/troubleshooting.md"
	if site != "" {
		page = strings.TrimRight(site, "/") + "/troubleshooting.html"
	}
	// Both give headings an anchor in lower case.
	return page + "#" + strings.ToLower(code)
}
