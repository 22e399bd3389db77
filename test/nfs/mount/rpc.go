package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/willscott/go-nfs-client/nfs"
	"github.com/willscott/go-nfs-client/nfs/rpc"
	"github.com/willscott/go-nfs-client/nfs/xdr"
)

// client makes one call at a time of a server, over a connection that it opens again when it breaks.
type client struct {
	address string
	// turn is held during a call.
	turn chan struct{}
	conn net.Conn
	xid  atomic.Uint32
}

func newClient(address string) *client {
	c := &client{address: address, turn: make(chan struct{}, 1)}
	c.xid.Store(uint32(time.Now().UnixNano()))
	return c
}

const (
	// answersIn is how long a call waits for an answer before it is sent again, on a new connection.
	answersIn = 15 * time.Second
	// retries is how long it waits before it connects again.
	retries = 500 * time.Millisecond
	// patience is how long a call waits in all: what unmounts must not wait for a server that is gone for good.
	patience = 10 * time.Minute
	// grace is how long a call goes on whose process got a signal: most answers arrive in time.
	grace = 2 * time.Second
)

// call calls a procedure and reads its reply. It waits for a server that does not answer.
func (c *client) call(ctx context.Context, who rpc.Auth, program, procedure uint32, args, reply any) error {
	start := time.Now()
	body, err := c.try(ctx, who, program, procedure, args)
	for err != nil {
		if time.Since(start) > patience {
			return syscall.EIO
		}
		select {
		case <-ctx.Done():
			return syscall.EINTR
		case <-time.After(retries):
		}
		body, err = c.try(ctx, who, program, procedure, args)
	}
	status, err := xdr.ReadUint32(body)
	if err != nil {
		return err
	}
	if status != nfs.NFS3Ok {
		return errnoOf(status)
	}
	if reply == nil {
		return nil
	}
	return xdr.Read(body, reply)
}

// try calls a procedure once and returns its result.
func (c *client) try(ctx context.Context, who rpc.Auth, program, procedure uint32, args any) (*bytes.Reader, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	body, err := c.exchange(ctx, who, program, procedure, args)
	if err != nil && c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
	return body, err
}

func (c *client) exchange(ctx context.Context, who rpc.Auth, program, procedure uint32, args any) (*bytes.Reader, error) {
	if c.conn == nil {
		conn, err := (&net.Dialer{Timeout: answersIn}).DialContext(ctx, "tcp", c.address)
		if err != nil {
			return nil, err
		}
		c.conn = conn
	}
	conn := c.conn
	if err := conn.SetDeadline(time.Now().Add(answersIn)); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now().Add(grace)) })()
	xid := c.xid.Add(1)
	request := bytes.NewBuffer(make([]byte, 4))
	header := struct {
		XID, Type uint32
		rpc.Header
	}{XID: xid, Header: rpc.Header{Rpcvers: 2, Prog: program, Vers: nfs.Nfs3Vers, Proc: procedure, Cred: who}}
	if err := xdr.Write(request, header); err != nil {
		return nil, err
	}
	if err := xdr.Write(request, args); err != nil {
		return nil, err
	}
	binary.BigEndian.PutUint32(request.Bytes(), 1<<31|uint32(request.Len()-4))
	if _, err := conn.Write(request.Bytes()); err != nil {
		return nil, err
	}
	reply, err := record(conn)
	if err != nil {
		return nil, err
	}
	var accepted struct {
		XID, Type, Denied uint32
		Verf              rpc.Auth
		Status            uint32
	}
	body := bytes.NewReader(reply)
	if err := xdr.Read(body, &accepted); err != nil {
		return nil, err
	}
	if accepted.XID != xid || accepted.Type != 1 || accepted.Denied != 0 || accepted.Status != rpc.Success {
		return nil, fmt.Errorf("the server answers procedure %d of program %d with %+v", procedure, program, accepted)
	}
	return body, nil
}

// record reads the fragments of a record.
func record(reader io.Reader) (all []byte, err error) {
	for isLast := false; !isLast; {
		var length uint32
		if err := binary.Read(reader, binary.BigEndian, &length); err != nil {
			return nil, err
		}
		isLast = length&(1<<31) != 0
		fragment := make([]byte, length&^(1<<31))
		if _, err := io.ReadFull(reader, fragment); err != nil {
			return nil, err
		}
		all = append(all, fragment...)
	}
	return all, nil
}

// errnoOf is the error that a program gets for a status of NFS 3. Most have the same numbers.
func errnoOf(status uint32) syscall.Errno {
	switch status {
	case nfs.NFS3ErrNameTooLong:
		return syscall.ENAMETOOLONG
	case nfs.NFS3ErrNotEmpty:
		return syscall.ENOTEMPTY
	case nfs.NFS3ErrDQuot:
		return syscall.EDQUOT
	case nfs.NFS3ErrStale, nfs.NFS3ErrBadHandle:
		return syscall.ESTALE
	case nfs.NFS3ErrNotSupp:
		return syscall.ENOTSUP
	}
	if status < nfs.NFS3ErrNameTooLong {
		return syscall.Errno(status)
	}
	return syscall.EIO
}

// root are the credentials of who mounts.
func root() rpc.Auth { return authSys(0, 0, nil) }

// asCaller returns the credentials of the process that a request of FUSE is from.
func asCaller(ctx context.Context) rpc.Auth {
	caller, ok := fuse.FromContext(ctx)
	if !ok {
		return root()
	}
	return authSys(caller.Uid, caller.Gid, groupsOf(caller.Pid))
}

// authSys are credentials of AUTH_SYS, which has room for 16 groups.
func authSys(uid, gid uint32, groups []uint32) rpc.Auth {
	var body bytes.Buffer
	_ = xdr.Write(&body, struct {
		Stamp    uint32
		Machine  string
		UID, GID uint32
		Groups   []uint32
	}{UID: uid, GID: gid, Groups: groups[:min(len(groups), 16)]})
	return rpc.Auth{Flavor: 1, Body: body.Bytes()}
}

// groupsOf are the other groups of a process.
func groupsOf(pid uint32) (groups []uint32) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return nil
	}
	_, after, _ := strings.Cut(string(status), "\nGroups:")
	line, _, _ := strings.Cut(after, "\n")
	for field := range strings.FieldsSeq(line) {
		if group, err := strconv.ParseUint(field, 10, 32); err == nil {
			groups = append(groups, uint32(group))
		}
	}
	return groups
}
