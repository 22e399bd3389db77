package main

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/willscott/go-nfs-client/nfs"
	"github.com/willscott/go-nfs-client/nfs/rpc"
)

// procFSStat is the procedure that the library lacks.
const procFSStat = 18

// refusal is why a server does not let a path be mounted.
type refusal syscall.Errno

func (r refusal) Error() string { return syscall.Errno(r).Error() }

// mount mounts the share. The returned function waits until it is unmounted.
func mount(o options) (wait func(), err error) {
	ctx, cancel := context.WithTimeout(context.Background(), answersWithin)
	defer cancel()
	s := &share{client: newClient(net.JoinHostPort(o.server, o.port)), path: o.path}
	if _, err := s.client.try(ctx, root(), nfs.MountProg, nfs.MountProc3Null, struct{}{}); err != nil {
		return nil, err
	}
	handle, err := s.root(ctx)
	var errno syscall.Errno
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &errno):
		return nil, refusal(errno)
	case err != nil:
		return nil, err
	}
	var immediately time.Duration
	settings := &fs.Options{
		// What another node has written must be seen at once.
		EntryTimeout: &immediately, AttrTimeout: &immediately, NegativeTimeout: &immediately, NullPermissions: true,
		MountOptions: fuse.MountOptions{
			FsName: o.share(), Name: "nfs", AllowOther: true, Options: []string{"default_permissions"}, DirectMountStrict: true,
			DisableXAttrs: true, MaxWrite: 1 << 20,
		},
	}
	if o.isReadOnly {
		settings.DirectMountFlags = syscall.MS_NOSUID | syscall.MS_NODEV | syscall.MS_RDONLY
	}
	server, err := fs.Mount(o.folder, &node{share: s, handle: handle}, settings)
	if err != nil {
		return nil, err
	}
	return server.Wait, nil
}

// share is an exported folder of a server.
type share struct {
	client *client
	path   string
}

// root asks for the handle of the exported folder.
func (s *share) root(ctx context.Context) (handle []byte, err error) {
	var reply struct{ Handle []byte }
	err = s.client.call(ctx, root(), nfs.MountProg, nfs.MountProc3MNT, struct{ Path string }{s.path}, &reply)
	return reply.Handle, err
}

func (s *share) call(ctx context.Context, procedure uint32, args, reply any) error {
	return s.client.call(ctx, asCaller(ctx), nfs.Nfs3Prog, procedure, args, reply)
}

// node is a file, a folder or a link.
type node struct {
	fs.Inode
	share *share
	// id is the server's number of the file.
	id uint64

	lock sync.Mutex
	// handle is the server's; nil: it must be looked up again.
	handle []byte
}

var (
	_ fs.NodeLookuper   = (*node)(nil)
	_ fs.NodeGetattrer  = (*node)(nil)
	_ fs.NodeSetattrer  = (*node)(nil)
	_ fs.NodeReaddirer  = (*node)(nil)
	_ fs.NodeOpener     = (*node)(nil)
	_ fs.NodeCreater    = (*node)(nil)
	_ fs.NodeMkdirer    = (*node)(nil)
	_ fs.NodeSymlinker  = (*node)(nil)
	_ fs.NodeReadlinker = (*node)(nil)
	_ fs.NodeUnlinker   = (*node)(nil)
	_ fs.NodeRmdirer    = (*node)(nil)
	_ fs.NodeRenamer    = (*node)(nil)
	_ fs.NodeStatfser   = (*node)(nil)
	_ fs.FileReader     = (*file)(nil)
	_ fs.FileWriter     = (*file)(nil)
	_ fs.FileFsyncer    = (*file)(nil)
)

func (n *node) setHandle(handle []byte) {
	n.lock.Lock()
	n.handle = handle
	n.lock.Unlock()
}

// find returns the node's handle.
func (n *node) find(ctx context.Context) ([]byte, error) {
	n.lock.Lock()
	handle := n.handle
	n.lock.Unlock()
	if handle != nil {
		return handle, nil
	}
	name, parent := n.Parent()
	if parent == nil {
		if !n.IsRoot() {
			return nil, syscall.ESTALE // it was removed
		}
		handle, err := n.share.root(ctx)
		if err == nil {
			n.setHandle(handle)
		}
		return handle, err
	}
	var found looked
	err := parent.Operations().(*node).do(ctx, func(parent []byte) error {
		return n.share.call(ctx, nfs.NFSProc3Lookup, nfs.Diropargs3{FH: parent, Filename: name}, &found)
	})
	if err != 0 {
		return nil, err
	}
	n.setHandle(found.Handle)
	return found.Handle, nil
}

// do makes a call with the node's handle, and once more with a new one if the server does not know it any more.
func (n *node) do(ctx context.Context, call func(handle []byte) error) syscall.Errno {
	for isFirst := true; ; isFirst = false {
		handle, err := n.find(ctx)
		if err == nil {
			err = call(handle)
		}
		var errno syscall.Errno
		switch {
		case err == nil:
			return 0
		case !errors.As(err, &errno):
			return syscall.EIO
		case errno != syscall.ESTALE || !isFirst:
			return errno
		}
		n.setHandle(nil)
	}
}

// forget has the handles of a node and of all below it looked up again.
func (n *node) forget() {
	n.setHandle(nil)
	for _, child := range n.Children() {
		child.Operations().(*node).forget()
	}
}

// looked is the reply of a lookup.
type looked struct {
	Handle      []byte
	Attr, Above nfs.PostOpAttr
}

// made is the reply of what creates something.
type made struct {
	Handle nfs.PostOpFH3
	Attr   nfs.PostOpAttr
	Above  nfs.WccData
}

// modeOf is the mode of a file with its type.
func modeOf(attr *nfs.Fattr) uint32 {
	kinds := map[uint32]uint32{
		nfs.NF3Dir: syscall.S_IFDIR, nfs.NF3Blk: syscall.S_IFBLK, nfs.NF3Chr: syscall.S_IFCHR,
		nfs.NF3Lnk: syscall.S_IFLNK, nfs.NF3Sock: syscall.S_IFSOCK, nfs.NF3FIFO: syscall.S_IFIFO,
	}
	kind, ok := kinds[attr.Type]
	if !ok {
		kind = syscall.S_IFREG
	}
	return kind | attr.FileMode&0o7777
}

func fill(attr *nfs.Fattr, out *fuse.Attr) {
	out.Mode, out.Nlink, out.Size, out.Blocks, out.Blksize = modeOf(attr), attr.Nlink, attr.Filesize, (attr.Used+511)/512, 1<<20
	out.Owner = fuse.Owner{Uid: attr.UID, Gid: attr.GID}
	out.Atime, out.Atimensec = uint64(attr.Atime.Seconds), attr.Atime.Nseconds
	out.Mtime, out.Mtimensec = uint64(attr.Mtime.Seconds), attr.Mtime.Nseconds
	out.Ctime, out.Ctimensec = uint64(attr.Ctime.Seconds), attr.Ctime.Nseconds
}

// child returns the node of a file in a folder, a new one unless it is the same file as before.
func (n *node) child(ctx context.Context, name string, handle []byte, attr *nfs.Fattr, out *fuse.EntryOut) *fs.Inode {
	fill(attr, &out.Attr)
	kind := modeOf(attr) & syscall.S_IFMT
	if existing := n.GetChild(name); existing != nil {
		if same := existing.Operations().(*node); same.id == attr.Fileid && existing.Mode() == kind {
			same.setHandle(handle)
			return existing
		}
	}
	return n.NewInode(ctx, &node{share: n.share, id: attr.Fileid, handle: handle}, fs.StableAttr{Mode: kind})
}

func (n *node) Lookup(ctx context.Context, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	var found looked
	errno := n.do(ctx, func(handle []byte) error {
		return n.share.call(ctx, nfs.NFSProc3Lookup, nfs.Diropargs3{FH: handle, Filename: name}, &found)
	})
	if errno != 0 {
		return nil, errno
	}
	if !found.Attr.IsSet {
		attr, err := n.share.attributes(ctx, found.Handle)
		if err != nil {
			return nil, fs.ToErrno(err)
		}
		found.Attr.Attr = *attr
	}
	return n.child(ctx, name, found.Handle, &found.Attr.Attr, out), 0
}

func (s *share) attributes(ctx context.Context, handle []byte) (*nfs.Fattr, error) {
	var reply struct{ Attr nfs.Fattr }
	err := s.call(ctx, nfs.NFSProc3GetAttr, struct{ FH []byte }{handle}, &reply)
	return &reply.Attr, err
}

func (n *node) Getattr(ctx context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	return n.do(ctx, func(handle []byte) error {
		attr, err := n.share.attributes(ctx, handle)
		if err == nil {
			fill(attr, &out.Attr)
		}
		return err
	})
}

func (n *node) Setattr(ctx context.Context, f fs.FileHandle, in *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	var args struct {
		FH    []byte
		Attr  nfs.Sattr3
		Guard uint32
	}
	args.Attr.Mode.Mode, args.Attr.Mode.SetIt = in.GetMode()
	args.Attr.UID.UID, args.Attr.UID.SetIt = in.GetUID()
	args.Attr.GID.UID, args.Attr.GID.SetIt = in.GetGID()
	args.Attr.Size.Size, args.Attr.Size.SetIt = in.GetSize()
	if at, ok := in.GetATime(); ok {
		args.Attr.Atime = timeOf(at)
	}
	if at, ok := in.GetMTime(); ok {
		args.Attr.Mtime = timeOf(at)
	}
	errno := n.do(ctx, func(handle []byte) error {
		args.FH = handle
		return n.share.call(ctx, nfs.NFSProc3SetAttr, args, nil)
	})
	if errno != 0 {
		return errno
	}
	return n.Getattr(ctx, f, out)
}

func timeOf(at time.Time) nfs.SetTime {
	return nfs.SetTime{SetIt: nfs.SetToClientTime, Time: nfs.NFS3Time{Seconds: uint32(at.Unix()), Nseconds: uint32(at.Nanosecond())}}
}

func (n *node) Readdir(ctx context.Context) (fs.DirStream, syscall.Errno) {
	var all []fuse.DirEntry
	errno := n.do(ctx, func(handle []byte) (err error) {
		all, err = n.share.list(ctx, handle)
		return err
	})
	return fs.NewListDirStream(all), errno
}

// list returns what a folder has.
func (s *share) list(ctx context.Context, handle []byte) (all []fuse.DirEntry, err error) {
	var args struct {
		FH               []byte
		Cookie, Verifier uint64
		Names, All       uint32
	}
	args.FH, args.Names, args.All = handle, 1<<16, 1<<17
	for isLast := false; !isLast; {
		// The entries follow each other, each after a word that is 1, and 0 after the last.
		var reply struct {
			Attr     nfs.PostOpAttr
			Verifier uint64
			Entries  *entries `xdr:"optional"`
			IsLast   bool
		}
		if err := s.call(ctx, nfs.NFSProc3ReadDirPlus, args, &reply); err != nil {
			return nil, err
		}
		for e := reply.Entries; e != nil; e = e.Next {
			args.Cookie = e.Cookie
			if e.FileName != "." && e.FileName != ".." {
				all = append(all, fuse.DirEntry{Name: e.FileName, Mode: modeOf(&e.Attr.Attr) & syscall.S_IFMT, Ino: e.FileId})
			}
		}
		if reply.Entries == nil && !reply.IsLast {
			return nil, syscall.EIO
		}
		args.Verifier, isLast = reply.Verifier, reply.IsLast
	}
	return all, nil
}

type entries struct {
	nfs.EntryPlus
	Next *entries `xdr:"optional"`
}

// sattr are the attributes of something new: its mode. The server gives it to the caller.
func sattr(mode uint32) nfs.Sattr3 {
	return nfs.Sattr3{Mode: nfs.SetMode{SetIt: true, Mode: mode & 0o7777}}
}

// create makes something in a folder and looks it up.
func (n *node) create(ctx context.Context, procedure uint32, name string, how any, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	errno := n.do(ctx, func(handle []byte) error {
		args := struct {
			Where nfs.Diropargs3
			How   any
		}{nfs.Diropargs3{FH: handle, Filename: name}, how}
		var reply made
		return n.share.call(ctx, procedure, args, &reply)
	})
	if errno != 0 {
		return nil, errno
	}
	return n.Lookup(ctx, name, out)
}

func (n *node) Mkdir(ctx context.Context, name string, mode uint32, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.create(ctx, nfs.NFSProc3Mkdir, name, sattr(mode), out)
}

func (n *node) Symlink(ctx context.Context, target, name string, out *fuse.EntryOut) (*fs.Inode, syscall.Errno) {
	return n.create(ctx, nfs.NFSProc3Symlink, name, struct {
		Attr   nfs.Sattr3
		Target string
	}{Target: target}, out)
}

func (n *node) Create(ctx context.Context, name string, flags, mode uint32, out *fuse.EntryOut) (*fs.Inode, fs.FileHandle, uint32, syscall.Errno) {
	const guarded = 1 // another node may have made it meanwhile
	child, errno := n.create(ctx, nfs.NFSProc3Create, name, struct {
		How  uint32
		Attr nfs.Sattr3
	}{guarded, sattr(mode)}, out)
	if errno == syscall.EEXIST && flags&syscall.O_EXCL == 0 {
		if child, errno = n.Lookup(ctx, name, out); errno == 0 && flags&syscall.O_TRUNC != 0 {
			var attr fuse.AttrOut
			in := &fuse.SetAttrIn{SetAttrInCommon: fuse.SetAttrInCommon{Valid: fuse.FATTR_SIZE}}
			errno = child.Operations().(*node).Setattr(ctx, nil, in, &attr)
			out.Attr = attr.Attr
		}
	}
	if errno != 0 {
		return nil, nil, 0, errno
	}
	return child, &file{child.Operations().(*node), asCaller(ctx)}, 0, 0
}

func (n *node) Readlink(ctx context.Context) ([]byte, syscall.Errno) {
	var reply struct {
		Attr   nfs.PostOpAttr
		Target []byte
	}
	errno := n.do(ctx, func(handle []byte) error {
		return n.share.call(ctx, nfs.NFSProc3Readlink, struct{ FH []byte }{handle}, &reply)
	})
	return reply.Target, errno
}

func (n *node) Unlink(ctx context.Context, name string) syscall.Errno {
	return n.remove(ctx, nfs.NFSProc3Remove, name)
}

func (n *node) Rmdir(ctx context.Context, name string) syscall.Errno {
	return n.remove(ctx, nfs.NFSProc3RmDir, name)
}

func (n *node) remove(ctx context.Context, procedure uint32, name string) syscall.Errno {
	return n.do(ctx, func(handle []byte) error {
		return n.share.call(ctx, procedure, nfs.Diropargs3{FH: handle, Filename: name}, nil)
	})
}

func (n *node) Rename(ctx context.Context, name string, to fs.InodeEmbedder, newName string, flags uint32) syscall.Errno {
	if flags != 0 {
		return syscall.EINVAL
	}
	target, ok := to.(*node)
	if !ok {
		return syscall.EXDEV
	}
	errno := n.do(ctx, func(from []byte) error {
		errno := target.do(ctx, func(to []byte) error {
			return n.share.call(ctx, nfs.NFSProc3Rename, struct{ From, To nfs.Diropargs3 }{
				nfs.Diropargs3{FH: from, Filename: name}, nfs.Diropargs3{FH: to, Filename: newName},
			}, nil)
		})
		if errno != 0 {
			return errno
		}
		return nil
	})
	// Handles of some servers are those of a path.
	if child := n.GetChild(name); errno == 0 && child != nil {
		child.Operations().(*node).forget()
	}
	return errno
}

func (n *node) Statfs(ctx context.Context, out *fuse.StatfsOut) syscall.Errno {
	var reply struct {
		Attr                             nfs.PostOpAttr
		Size, Free, Available            uint64
		Files, FreeFiles, AvailableFiles uint64
	}
	errno := n.do(ctx, func(handle []byte) error {
		return n.share.call(ctx, procFSStat, struct{ FH []byte }{handle}, &reply)
	})
	const block = 4096
	out.Bsize, out.Frsize, out.NameLen = block, block, 255
	out.Blocks, out.Bfree, out.Bavail = reply.Size/block, reply.Free/block, reply.Available/block
	out.Files, out.Ffree = reply.Files, reply.AvailableFiles
	return errno
}

func (n *node) Open(ctx context.Context, _ uint32) (fs.FileHandle, uint32, syscall.Errno) {
	return &file{n, asCaller(ctx)}, 0, 0
}

// file is an open file. It is read and written as who opened it, also when the kernel does so later on its own.
type file struct {
	node *node
	who  rpc.Auth
}

func (f *file) Read(ctx context.Context, dest []byte, offset int64) (fuse.ReadResult, syscall.Errno) {
	var reply struct {
		Attr       nfs.PostOpAttr
		Count, EOF uint32
		Data       []byte
	}
	errno := f.node.do(ctx, func(handle []byte) error {
		args := struct {
			FH     []byte
			Offset uint64
			Count  uint32
		}{handle, uint64(offset), uint32(len(dest))}
		return f.node.share.client.call(ctx, f.who, nfs.Nfs3Prog, nfs.NFSProc3Read, args, &reply)
	})
	return fuse.ReadResultData(reply.Data), errno
}

func (f *file) Write(ctx context.Context, data []byte, offset int64) (uint32, syscall.Errno) {
	const synchronous = 2 // when the server answers, the data is there
	var reply struct {
		Attr  nfs.WccData
		Count uint32
	}
	errno := f.node.do(ctx, func(handle []byte) error {
		args := struct {
			FH         []byte
			Offset     uint64
			Count, How uint32
			Data       []byte
		}{handle, uint64(offset), uint32(len(data)), synchronous, data}
		return f.node.share.client.call(ctx, f.who, nfs.Nfs3Prog, nfs.NFSProc3Write, args, &reply)
	})
	return reply.Count, errno
}

// Fsync has nothing to do: writes are synchronous.
func (f *file) Fsync(context.Context, uint32) syscall.Errno { return 0 }
