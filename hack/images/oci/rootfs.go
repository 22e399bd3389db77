package oci

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// RootFS is an image made from a root file system, a tar file as mmdebstrap
// or debootstrap write it.
type RootFS struct {
	// Reference is the image's name with its tag, for instance
	// "odh/mpi-sample-openmpi:dev".
	Reference string
	// Tar is an uncompressed tar file. Owners, modes, links and extended
	// attributes are kept; times, owners' names, devices and sockets are not
	// (a container gets its devices from the runtime).
	Tar string
	// Base is the docker-archive of an image on whose layers this one is put, and empty if there is none.
	Base   string
	Config Config
}

// Write writes the image to file as a docker-archive.
func (r RootFS) Write(file string) (err error) {
	tag, err := parseReference(r.Reference)
	if err != nil {
		return err
	}
	source, err := os.Open(r.Tar)
	if err != nil {
		return fmt.Errorf("root file system: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	entries, err := indexTar(source)
	if err != nil {
		return fmt.Errorf("root file system %s: %w", r.Tar, err)
	}
	base := empty.Image
	if r.Base != "" {
		if base, err = tarball.ImageFromPath(r.Base, nil); err != nil {
			return fmt.Errorf("base %s: %w", r.Base, err)
		}
	}
	return writeArchive(file, tag, r.Config, base, func(w io.Writer) error {
		return writeEntries(w, source, entries)
	})
}

// entry is one member of a tar file and where its content begins there.
type entry struct {
	header *tar.Header
	offset int64
}

// indexTar lists the entries of a layer, in the layer's order: by name, so that
// a folder precedes its content, with hard links last, after their targets.
func indexTar(source io.ReadSeeker) ([]entry, error) {
	var entries []entry
	reader := tar.NewReader(source)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("after %d entries: %w", len(entries), err)
		}
		normal := normalHeader(header)
		if normal == nil {
			continue
		}
		// tar.Reader reads no further than it must, so this is the content.
		offset, err := source.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, fmt.Errorf("entry %s: %w", header.Name, err)
		}
		entries = append(entries, entry{header: normal, offset: offset})
	}
	if len(entries) == 0 {
		return nil, errors.New("it is empty")
	}
	slices.SortStableFunc(entries, func(a, b entry) int {
		if aLink, bLink := a.header.Typeflag == tar.TypeLink, b.header.Typeflag == tar.TypeLink; aLink != bLink {
			if aLink {
				return 1
			}
			return -1
		}
		return strings.Compare(a.header.Name, b.header.Name)
	})
	return entries, nil
}

// normalHeader returns the header as the layer has it, or nil for an entry
// that the layer leaves out.
func normalHeader(header *tar.Header) *tar.Header {
	normal := &tar.Header{
		Typeflag: header.Typeflag,
		Name:     relative(header.Name),
		Linkname: header.Linkname,
		Mode:     header.Mode,
		Uid:      header.Uid,
		Gid:      header.Gid,
		ModTime:  epoch,
	}
	if normal.Name == "" {
		return nil
	}
	switch header.Typeflag {
	case tar.TypeReg:
		normal.Size = header.Size
	case tar.TypeDir:
		normal.Name += "/"
	case tar.TypeLink:
		normal.Linkname = relative(header.Linkname)
	case tar.TypeSymlink:
	default:
		return nil
	}
	for key, value := range header.PAXRecords {
		if !strings.HasPrefix(key, "SCHILY.xattr.") {
			continue
		}
		if normal.PAXRecords == nil {
			normal.PAXRecords = map[string]string{}
		}
		normal.PAXRecords[key] = value
	}
	return normal
}

// relative turns "./a/b/" and "/a/b" into "a/b", and the root into "".
func relative(name string) string {
	return strings.TrimPrefix(path.Clean("/"+name), "/")
}

func writeEntries(w io.Writer, source io.ReaderAt, entries []entry) error {
	archive := tar.NewWriter(w)
	for _, e := range entries {
		if err := archive.WriteHeader(e.header); err != nil {
			return fmt.Errorf("entry %s: %w", e.header.Name, err)
		}
		if _, err := io.Copy(archive, io.NewSectionReader(source, e.offset, e.header.Size)); err != nil {
			return fmt.Errorf("content of %s: %w", e.header.Name, err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("end of the layer: %w", err)
	}
	return nil
}
