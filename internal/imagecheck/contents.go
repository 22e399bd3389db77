package imagecheck

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// The limits of what is kept of an image, and of what is read. They are far above those of real images: the largest ones of
// GPU vendors have 60,000 folders and links, and 40 GB.
const (
	maxNodes       = 500_000
	maxNames       = 64 << 20
	maxRead        = 1 << 40
	maxPath        = 4096
	maxDepth       = 200
	maxLinks       = 40
	maxText        = 64 << 10
	maxTexts       = 4 << 20
	whiteoutPrefix = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// Contents is what the layers of an image contain, as far as the checks need it: folders, links, and the files that isKept
// selects. Everything else is read and dropped. A container runtime would create the same files from the same layers: parent
// folders that are links are followed within the image, and no name leads out of it.
type Contents struct {
	// workingDir is the folder whose unreadable files are kept.
	workingDir string
	root       *node
	layer      int
	nodes      int
	names      int
	texts      int
	unpacked   int64
}

// node is a file, a folder or a link of an image.
type node struct {
	mode     fs.FileMode
	gid      int
	target   string // of a link
	text     string // of a small file that textFiles selects
	tokens   []string
	children map[string]*node
	layer    int
}

func (n *node) isDir() bool  { return n.mode.IsDir() }
func (n *node) isLink() bool { return n.mode&fs.ModeSymlink != 0 }

// LimitError is returned for an image that exceeds a limit of the checks.
type LimitError struct{ What string }

// Error says which limit is exceeded.
func (e *LimitError) Error() string { return "the image cannot be checked: it has more than " + e.What }

// NewContents returns the contents of an image without layers. Files below the working directory are examined for their
// permissions.
func NewContents(workingDir string) *Contents {
	return &Contents{workingDir: clean(workingDir), root: &node{mode: fs.ModeDir | 0o755}}
}

// Unpacked returns the bytes of all layers, unpacked.
func (c *Contents) Unpacked() int64 { return c.unpacked }

// AddLayer adds a layer, a tar file, on top of the others.
func (c *Contents) AddLayer(layer io.Reader) error {
	c.layer++
	counted := &counter{from: layer, read: &c.unpacked}
	archive := tar.NewReader(counted)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read the layer: %w", err)
		}
		if err := c.add(header, archive); err != nil {
			return err
		}
	}
	// What follows the end of the tar file belongs to the layer's digest.
	_, err := io.Copy(io.Discard, counted)
	return err
}

// counter counts what is read, and fails at maxRead.
type counter struct {
	from io.Reader
	read *int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	if *c.read += int64(n); *c.read > maxRead {
		return n, &LimitError{"1 TiB of files"}
	}
	return n, err
}

// add adds an entry of a layer.
func (c *Contents) add(header *tar.Header, content io.Reader) error {
	name := clean(header.Name)
	folder, base := path.Split(name)
	if name == "/" || len(name) > maxPath || strings.Count(name, "/") > maxDepth {
		return nil
	}
	if strings.HasPrefix(base, whiteoutPrefix) {
		c.remove(folder, base)
		return nil
	}
	var added *node
	mode := header.FileInfo().Mode()
	switch header.Typeflag {
	case tar.TypeDir:
		added = &node{mode: fs.ModeDir | mode.Perm()}
	case tar.TypeSymlink:
		if len(header.Linkname) <= maxPath {
			added = &node{mode: fs.ModeSymlink | 0o777, target: header.Linkname}
			c.names += len(header.Linkname)
		}
	case tar.TypeLink:
		if original := c.find(clean(header.Linkname), false); original != nil && !original.isDir() {
			added = &node{mode: original.mode, gid: original.gid, target: original.target, text: original.text, tokens: original.tokens}
		} else if isKept(name) {
			added = &node{mode: mode.Perm()}
		}
	case tar.TypeReg:
		if !isKept(name) && !c.isUnreadable(name, mode, header.Gid) {
			break
		}
		file, err := c.readFile(name, header, content)
		if err != nil {
			return err
		}
		added = file
	}
	parent, err := c.folder(folder, added != nil)
	if parent == nil {
		return err
	}
	if added == nil {
		delete(parent.children, base)
		return nil
	}
	if header.Typeflag != tar.TypeLink {
		added.gid = header.Gid
	}
	if old := parent.children[base]; old != nil && old.isDir() && added.isDir() {
		old.mode, old.gid, old.layer = added.mode, added.gid, c.layer
		return nil
	}
	return c.put(parent, base, added)
}

// put sets a child of a folder.
func (c *Contents) put(parent *node, base string, added *node) error {
	added.layer = c.layer
	if parent.children == nil {
		parent.children = map[string]*node{}
	}
	parent.children[base] = added
	c.nodes++
	c.names += len(base)
	if c.nodes > maxNodes || c.names > maxNames {
		return &LimitError{fmt.Sprintf("%d folders and links", maxNodes)}
	}
	return nil
}

// readFile returns a file with what the checks need of its content.
func (c *Contents) readFile(name string, header *tar.Header, content io.Reader) (*node, error) {
	file := &node{mode: header.FileInfo().Mode().Perm()}
	switch {
	case hasTokens(name):
		tokens, err := scanTokens(content)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		file.tokens = tokens
	case isText(name) && header.Size <= maxText && c.texts < maxTexts:
		text, err := io.ReadAll(io.LimitReader(content, maxText))
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		file.text = string(text)
		c.texts += len(text)
	}
	return file, nil
}

// isUnreadable reports whether a file in the working directory cannot be read by a user that the image does not know. On
// OpenShift this user is in the group 0.
func (c *Contents) isUnreadable(name string, mode fs.FileMode, gid int) bool {
	return c.workingDir != "/" && strings.HasPrefix(name, c.workingDir+"/") && !isReadable(mode, gid)
}

// isReadable reports whether a user in the group 0 that owns no file can read a file.
func isReadable(mode fs.FileMode, gid int) bool {
	return mode&0o004 != 0 || gid == 0 && mode&0o040 != 0
}

// remove applies a whiteout: it hides what lower layers have.
func (c *Contents) remove(folder, base string) {
	parent := c.find(folder, true)
	if parent == nil || !parent.isDir() {
		return
	}
	for name, child := range parent.children {
		if (base == opaqueWhiteout || whiteoutPrefix+name == base) && !c.prune(child) {
			delete(parent.children, name)
		}
	}
}

// prune drops what lower layers have of a file or folder, and reports whether anything of this layer remains.
func (c *Contents) prune(n *node) bool {
	remains := n.layer == c.layer
	for name, child := range n.children {
		if c.prune(child) {
			remains = true
		} else {
			delete(n.children, name)
		}
	}
	return remains
}

// folder returns a folder, following links. If create is set, it is created if it does not exist; nil means that it does not
// exist or cannot be created.
func (c *Contents) folder(name string, create bool) (*node, error) {
	found, reached := c.walkTo(name, true)
	switch {
	case found != nil && found.isDir():
		return found, nil
	case found != nil || !create || reached == "":
		return nil, nil
	}
	at := c.root
	for part := range strings.SplitSeq(strings.Trim(reached, "/"), "/") {
		child := at.children[part]
		if child == nil || !child.isDir() {
			child = &node{mode: fs.ModeDir | 0o755}
			if err := c.put(at, part, child); err != nil {
				return nil, err
			}
		}
		at = child
	}
	return at, nil
}

// find returns the file, folder or link with a name. Links in the name are followed, and at its end if follow is set. It
// returns nil if nothing is known under this name.
func (c *Contents) find(name string, follow bool) *node {
	found, _ := c.walkTo(name, follow)
	return found
}

// walkTo follows a name from the root. It returns the node, nil if there is none, and its name without links, "" if there are
// too many.
func (c *Contents) walkTo(name string, follow bool) (*node, string) {
	links := 0
	todo := strings.Split(strings.Trim(clean(name), "/"), "/")
	at, reached := []*node{c.root}, []string{}
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(reached) > 0 {
				at, reached = at[:len(at)-1], reached[:len(reached)-1]
			}
			continue
		}
		var child *node
		if last := at[len(at)-1]; last != nil {
			child = last.children[part]
		}
		if child != nil && child.isLink() && (follow || len(todo) > 0) {
			if links++; links > maxLinks {
				return nil, ""
			}
			if path.IsAbs(child.target) {
				at, reached = at[:1], reached[:0]
			}
			todo = append(strings.Split(child.target, "/"), todo...)
			continue
		}
		at, reached = append(at, child), append(reached, part)
	}
	return at[len(at)-1], "/" + strings.Join(reached, "/")
}

// each calls a function with each file and link below a folder, by name.
func (c *Contents) each(folder string, call func(name string, n *node)) {
	if start, reached := c.walkTo(folder, true); start != nil {
		eachBelow(strings.TrimSuffix(reached, "/"), start, call)
	}
}

func eachBelow(name string, n *node, call func(string, *node)) {
	names := make([]string, 0, len(n.children))
	for child := range n.children {
		names = append(names, child)
	}
	slices.Sort(names)
	for _, child := range names {
		call(name+"/"+child, n.children[child])
		eachBelow(name+"/"+child, n.children[child], call)
	}
}

// clean returns an absolute name without dots.
func clean(name string) string { return path.Clean("/" + name) }
