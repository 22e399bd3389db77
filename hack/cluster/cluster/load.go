package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"opendatahub.io/mpijob/hack/cluster/imagetar"
	"opendatahub.io/mpijob/hack/cluster/layout"
	"opendatahub.io/mpijob/hack/cluster/node"
)

// Load imports image archives into every node, all nodes at once. An image
// that a node has already under the same name is skipped.
func (c *Cluster) Load(ctx context.Context, archives []string) error {
	s, err := c.settings()
	if errors.Is(err, errNoCluster) {
		return fmt.Errorf("load: %w in %s; start it with: cluster up", err, c.Layout.State)
	}
	if err != nil {
		return err
	}
	return c.loadAll(ctx, c.nodes(s.Nodes), archives)
}

func (c *Cluster) loadAll(ctx context.Context, nodes []layout.Node, archives []string) error {
	var imported atomic.Bool
	err := forEach(ctx, nodes, func(ctx context.Context, n layout.Node) error {
		for _, archive := range archives {
			is, err := c.load(ctx, n, archive)
			if err != nil {
				return err
			}
			if is {
				imported.Store(true)
			}
		}
		return nil
	})
	if err != nil || !imported.Load() {
		return err
	}
	return c.flush()
}

// flush waits until the disk has what was written. On a slow one that takes
// minutes after gigabytes of images, in which etcd and all that log would wait
// for it instead, and requests would time out.
func (c *Cluster) flush() error {
	step := c.Report.Step("write images to disk")
	state, err := os.Open(c.Layout.State)
	if err != nil {
		return step.End(fmt.Errorf("flush: %w", err))
	}
	defer func() { _ = state.Close() }()
	if err := unix.Syncfs(int(state.Fd())); err != nil {
		return step.End(fmt.Errorf("flush: %w", err))
	}
	step.Done("")
	return nil
}

// load imports an archive, unless the node has its images already.
func (c *Cluster) load(ctx context.Context, n layout.Node, archive string) (imported bool, err error) {
	step := c.Report.Step("%s: load %s", n.Name(), filepath.Base(archive))
	images, err := imagetar.Read(archive)
	if err != nil {
		return false, step.End(err)
	}
	present, err := c.images(ctx, n)
	if err != nil {
		return false, step.End(err)
	}
	if present.has(images) {
		step.Done("there already")
		return false, nil
	}
	if _, err := c.ctr(ctx, n, "images", "import", archive); err != nil {
		return false, step.End(fmt.Errorf("load %s: %w", archive, err))
	}
	step.Done("%s", strings.Join(references(images), ", "))
	return true, nil
}

func references(images []imagetar.Image) []string {
	var all []string
	for _, image := range images {
		all = append(all, image.References...)
	}
	return all
}

// present is a node's images: the digest of what each name points to.
type present map[string]string

// has reports whether all images are there under all their names. Kubernetes'
// side of containerd names each image once more by its configuration's
// digest; a name is the same image if both point to the same.
func (p present) has(images []imagetar.Image) bool {
	for _, image := range images {
		target, ok := p[image.ConfigDigest]
		if !ok || len(image.References) == 0 {
			return false
		}
		for _, reference := range image.References {
			if p[imagetar.Normalize(reference)] != target {
				return false
			}
		}
	}
	return true
}

func (c *Cluster) images(ctx context.Context, n layout.Node) (present, error) {
	output, err := c.ctr(ctx, n, "images", "list")
	if err != nil {
		return nil, fmt.Errorf("images of %s: %w", n.Name(), err)
	}
	return parseImages(output), nil
}

// parseImages reads the table of "ctr images list": REF TYPE DIGEST …
func parseImages(table string) present {
	images := present{}
	for line := range strings.SplitSeq(table, "\n") {
		if fields := strings.Fields(line); len(fields) >= 3 && strings.HasPrefix(fields[2], "sha256:") {
			images[fields[0]] = fields[2]
		}
	}
	return images
}

// ctr runs the ctr that was built with the node's containerd.
func (c *Cluster) ctr(ctx context.Context, n layout.Node, args ...string) (string, error) {
	process, err := c.containerdProcess(n)
	if err != nil {
		return "", err
	}
	program, err := os.Readlink(process + "/exe")
	if err != nil {
		return "", fmt.Errorf("containerd of %s: %w", n.Name(), err)
	}
	ctr, socket := filepath.Join(filepath.Dir(program), "ctr"), process+"/root"+node.ContainerdSocket
	var stdout, stderr bytes.Buffer
	command := exec.CommandContext(ctx, ctr, append([]string{"--address", socket, "--namespace", "k8s.io"}, args...)...)
	command.Stdout, command.Stderr = &stdout, &stderr
	if err := command.Run(); err != nil {
		return "", fmt.Errorf("ctr %s on %s: %w: %s", strings.Join(args, " "), n.Name(), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
