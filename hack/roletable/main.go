// Command roletable writes the table of rights in docs/roles.md from config/rbac/users.yaml. Run it at the root.
package main

import (
	"fmt"
	"os"
	"strings"

	"opendatahub.io/mpijob/internal/roles"
)

const (
	file  = "docs/roles.md"
	start = "<!-- roletable -->\n"
	end   = "<!-- /roletable -->\n"
)

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
	before, rest, opened := strings.Cut(string(page), start)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return fmt.Errorf("%s must contain the lines %q and %q", file, strings.TrimSpace(start), strings.TrimSpace(end))
	}
	text := before + start + roles.Table(roles.ForUsers()) + end + after
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil { //nolint:gosec // A page of the documentation is readable by everyone.
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}
