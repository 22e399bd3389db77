// Command roletable writes the tables of rights in docs/roles.md from the manifests. Run it at the root.
package main

import (
	"fmt"
	"os"
	"strings"

	"opendatahub.io/mpijob/internal/roles"
)

const file = "docs/roles.md"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "roletable:", err)
		os.Exit(1)
	}
}

func run() error {
	page, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the page: %w", err)
	}
	accounts, err := roles.Accounts(".")
	if err != nil {
		return fmt.Errorf("read the roles of accounts: %w", err)
	}
	text := string(page)
	for marker, table := range map[string]string{
		"roletable": roles.Table(roles.ForUsers()), "accounttable": roles.AccountsTable(roles.AccountNames, accounts),
	} {
		if text, err = replace(text, "<!-- "+marker+" -->\n", "<!-- /"+marker+" -->\n", table); err != nil {
			return err
		}
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // A page of the documentation is readable by everyone.
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// replace puts a table between two lines of a page.
func replace(page, start, end, table string) (string, error) {
	before, rest, opened := strings.Cut(page, start)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return "", fmt.Errorf("%s must contain the lines %q and %q", file, strings.TrimSpace(start), strings.TrimSpace(end))
	}
	return before + start + table + end + after, nil
}
