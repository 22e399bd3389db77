// Package web contains the built pages of the dashboard.
package web

import (
	"embed"
	"io/fs"
)

// The folder dist contains the pages if `make dashboard` built them, and otherwise only a README: Go programs build without
// Node.js.
//
//go:embed all:dist
var dist embed.FS

// Assets returns the built pages; nil if they were not built.
func Assets() fs.FS {
	app, err := fs.Sub(dist, "dist/app")
	if err != nil {
		return nil
	}
	if _, err := fs.Stat(app, "index.html"); err != nil {
		return nil
	}
	return app
}
