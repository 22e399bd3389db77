// Command registry serves a container registry on this machine, and pushes the images of a release to one. It is for tests of releases:
// it has no passwords.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

const usage = `Serve a container registry on this machine, and push to one.

  registry serve --folder FOLDER [--address 127.0.0.1:0]
      Serve a registry until it is interrupted. FOLDER/address contains its address, FOLDER/requests a line for each request.
  registry push LAYOUT REFERENCE
      Push the image in an OCI image layout, with all architectures, and print its digest.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	switch {
	case len(args) > 0 && args[0] == "serve":
		flags := flag.NewFlagSet("registry serve", flag.ContinueOnError)
		folder := flags.String("folder", "", "`folder` for images and the two files")
		address := flags.String("address", "127.0.0.1:0", "`address` to listen on; with port 0 a free port")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		if *folder == "" {
			return errors.New("serve: --folder is missing")
		}
		return serve(ctx, *folder, *address)
	case len(args) == 3 && args[0] == "push":
		digest, err := push(ctx, args[1], args[2])
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(stdout, digest)
		return err
	}
	return fmt.Errorf("%q is no command\n%s", args, usage)
}

// serve runs a registry until ctx ends.
func serve(ctx context.Context, folder, address string) error {
	blobs := filepath.Join(folder, "blobs")
	if err := os.MkdirAll(blobs, 0o755); err != nil { //nolint:gosec // images are no secrets
		return fmt.Errorf("make the folder of blobs: %w", err)
	}
	requests, err := os.Create(filepath.Join(folder, "requests")) //nolint:gosec // the caller's own folder
	if err != nil {
		return fmt.Errorf("write requests: %w", err)
	}
	defer requests.Close()
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}

	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithBlobHandler(registry.NewDiskBlobHandler(blobs)))
	server := &http.Server{Handler: logged(requests, handler), ReadHeaderTimeout: time.Minute}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		_ = server.Close()
	}()
	if err := writeAddress(folder, listener.Addr().String()); err != nil {
		return errors.Join(err, listener.Close())
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	<-stopped
	return nil
}

// writeAddress writes the file at once: no reader sees a part of it.
func writeAddress(folder, address string) error {
	path := filepath.Join(folder, "address")
	if err := os.WriteFile(path+".new", []byte(address+"\n"), 0o644); err != nil { //nolint:gosec // no secret
		return fmt.Errorf("write the address: %w", err)
	}
	return os.Rename(path+".new", path)
}

// logged writes a line for each request: method, path and program.
func logged(out io.Writer, handler http.Handler) http.Handler {
	lines := log.New(out, "", 0)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lines.Printf("%s %q %q", r.Method, r.URL.Path, r.UserAgent())
		handler.ServeHTTP(w, r)
	})
}

// push pushes the only image of a layout, an index of all architectures, and returns its digest.
func push(ctx context.Context, folder, reference string) (string, error) {
	tag, err := name.NewTag(reference)
	if err != nil {
		return "", fmt.Errorf("read the reference %q: %w", reference, err)
	}
	index, digest, err := readLayout(folder)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", folder, err)
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return "", fmt.Errorf("push %s: %w", reference, err)
	}
	return digest.String(), nil
}

func readLayout(folder string) (v1.ImageIndex, v1.Hash, error) {
	all, err := layout.ImageIndexFromPath(folder)
	if err != nil {
		return nil, v1.Hash{}, err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return nil, v1.Hash{}, err
	}
	if len(manifest.Manifests) != 1 || !manifest.Manifests[0].MediaType.IsIndex() {
		return nil, v1.Hash{}, errors.New("the layout does not have exactly one image")
	}
	digest := manifest.Manifests[0].Digest
	index, err := all.ImageIndex(digest)
	return index, digest, err
}
