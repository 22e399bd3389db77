package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"

	"golang.org/x/sys/unix"
)

// squashed is the user of requests by root of a client: nobody.
const squashed = 65534

// asCallers is a listener whose connections act as the user of each request.
type asCallers struct{ net.Listener }

func (l asCallers) Accept() (net.Conn, error) {
	connection, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &asCaller{Conn: connection}, nil
}

// asCaller is a connection on which one goroutine reads a request, serves it, and reads the next. Before a request is read, it gives
// its thread the user and the groups that the request names: those by which the kernel decides about files belong to a thread.
type asCaller struct {
	net.Conn
	isLocked bool
	// start is what is left of the request's start, which was read to find its user; rest is the length of what follows.
	start bytes.Reader
	rest  int64
}

func (c *asCaller) Read(p []byte) (int, error) {
	if c.start.Len() == 0 && c.rest == 0 {
		if err := c.begin(); err != nil {
			return 0, err
		}
	}
	if c.start.Len() > 0 {
		return c.start.Read(p)
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.rest)])
	c.rest -= int64(n)
	return n, err
}

// The words of a request before its credentials (RFC 5531): length, xid, type, version of RPC, program, version, procedure, and
// the credentials' flavor and length.
const (
	wordLength      = 0
	wordFlavor      = 7
	wordCredentials = 8
	words           = 9
)

// begin reads a request up to its credentials and takes its user.
func (c *asCaller) begin() error {
	head := make([]byte, 4*words)
	if _, err := io.ReadFull(c.Conn, head); err != nil {
		return err
	}
	word := func(n int) uint32 { return binary.BigEndian.Uint32(head[4*n:]) }
	length, size := int64(word(wordLength)&^(1<<31))+4, word(wordCredentials)
	if size > 400 || length < int64(len(head))+int64(size) {
		return fmt.Errorf("a request of %d bytes has %d bytes of credentials", length, size)
	}
	credentials := make([]byte, size)
	if _, err := io.ReadFull(c.Conn, credentials); err != nil {
		return err
	}
	c.start.Reset(append(head, credentials...))
	c.rest = length - int64(len(head)) - int64(size)
	who := caller{uid: squashed, gid: squashed}
	if word(wordFlavor) == 1 {
		who.parse(credentials)
	}
	if !c.isLocked {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		c.isLocked = true
	}
	return who.take()
}

// caller is the user of a request.
type caller struct {
	uid, gid int
	groups   []int
}

// parse reads the user of AUTH_SYS: stamp, name of the machine, user, group, and more groups. A request that is cut short is nobody's.
func (c *caller) parse(credentials []byte) {
	var head struct{ Stamp, Name uint32 }
	reader := bytes.NewReader(credentials)
	if binary.Read(reader, binary.BigEndian, &head) != nil {
		return
	}
	if _, err := reader.Seek(int64(head.Name+3)&^3, io.SeekCurrent); err != nil {
		return
	}
	var user struct{ UID, GID, Groups uint32 }
	if binary.Read(reader, binary.BigEndian, &user) != nil || user.Groups > 16 {
		return
	}
	groups := make([]uint32, user.Groups)
	if binary.Read(reader, binary.BigEndian, groups) != nil || user.UID == 0 {
		return
	}
	c.uid, c.gid = int(user.UID), int(user.GID)
	for _, group := range groups {
		c.groups = append(c.groups, int(group))
	}
}

// take has the thread act as the caller.
func (c caller) take() error {
	if err := unix.Setgroups(c.groups); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := unix.Setfsgid(c.gid); err != nil {
		return fmt.Errorf("setfsgid: %w", err)
	}
	if err := unix.Setfsuid(c.uid); err != nil {
		return fmt.Errorf("setfsuid: %w", err)
	}
	return nil
}
