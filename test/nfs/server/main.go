// Command server is an NFS 3 server for tests: it exports every folder below ROOT, and has the MOUNT protocol on the same port.
// It acts as the user of each request, and as nobody for root (root_squash), as NFS servers do by default.
//
//	server ADDRESS:PORT ROOT
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/go-git/go-billy/v5"
	"github.com/go-git/go-billy/v5/osfs"
	"github.com/willscott/go-nfs"
	"github.com/willscott/go-nfs/helpers"
	"golang.org/x/sys/unix"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: server ADDRESS:PORT ROOT")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func run(address, root string) error {
	// Clients send the mode of a new file without the bits of their mask.
	unix.Umask(0)
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return err
	}
	// Callers need not be able to reach the folders above.
	if err := os.Chdir(root); err != nil {
		return err
	}
	nfs.Log.SetLevel(nfs.PanicLevel)
	return nfs.Serve(asCallers{listener}, helpers.NewCachingHandler(exports{}, 1<<16))
}

// exports are the folders below the working folder. The handler that wraps it keeps the handles of their files.
type exports struct{}

func (exports) Mount(_ context.Context, _ net.Conn, request nfs.MountRequest) (nfs.MountStatus, billy.Filesystem, []nfs.AuthFlavor) {
	path := filepath.Join(".", filepath.Clean("/"+string(request.Dirpath)))
	exported := changeable{osfs.New(path)}
	switch info, err := os.Stat(path); {
	case os.IsPermission(err):
		return nfs.MountStatusErrAcces, exported, nil
	case err != nil:
		return nfs.MountStatusErrNoEnt, exported, nil
	case !info.IsDir():
		return nfs.MountStatusErrNotDir, exported, nil
	}
	return nfs.MountStatusOk, exported, []nfs.AuthFlavor{nfs.AuthFlavorUnix}
}

func (exports) Change(files billy.Filesystem) billy.Change { return files.(changeable) }

func (exports) FSStat(_ context.Context, files billy.Filesystem, stat *nfs.FSStat) error {
	var s unix.Statfs_t
	if err := unix.Statfs(files.Root(), &s); err != nil {
		return err
	}
	block := uint64(s.Bsize)
	stat.TotalSize, stat.FreeSize, stat.AvailableSize = s.Blocks*block, s.Bfree*block, s.Bavail*block
	stat.TotalFiles, stat.FreeFiles, stat.AvailableFiles = s.Files, s.Ffree, s.Ffree
	return nil
}

func (exports) ToHandle(billy.Filesystem, []string) []byte            { return nil }
func (exports) FromHandle([]byte) (billy.Filesystem, []string, error) { return nil, nil, os.ErrInvalid }
func (exports) InvalidateHandle(billy.Filesystem, []byte) error       { return nil }
func (exports) HandleLimit() int                                      { return -1 }

// changeable is an exported folder whose files may get other attributes.
type changeable struct{ billy.Filesystem }

func (c changeable) path(name string) string { return filepath.Join(c.Root(), name) }

func (c changeable) Chmod(name string, mode os.FileMode) error { return os.Chmod(c.path(name), mode) }

func (c changeable) Chown(name string, uid, gid int) error { return os.Chown(c.path(name), uid, gid) }

func (c changeable) Lchown(name string, uid, gid int) error { return os.Lchown(c.path(name), uid, gid) }

func (c changeable) Chtimes(name string, accessed, modified time.Time) error {
	return os.Chtimes(c.path(name), accessed, modified)
}
