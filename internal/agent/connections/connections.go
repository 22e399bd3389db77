// Package connections limits the number of open connections, and notices peers that have gone.
package connections

import (
	"net"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Most is how many connections may be open: of those that have not proved whose they are, and of those of the status.
const Most = 64

// Limited are open connections, the oldest first. If there are more than Most, the oldest ones are closed.
type Limited struct {
	mu    sync.Mutex
	conns []net.Conn
}

// Add adds a connection and closes the oldest ones if there are too many; it returns how many it closed.
func (l *Limited) Add(conn net.Conn) (closed int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, conn)
	for len(l.conns) > Most {
		l.conns[0].Close()
		l.conns = l.conns[1:]
		closed++
	}
	return closed
}

// Remove takes one out; it reports whether Add had done so before.
func (l *Limited) Remove(conn net.Conn) (gone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.conns, conn)
	if i < 0 {
		return true
	}
	l.conns = slices.Delete(l.conns, i, i+1)
	return false
}

// silence is how long a peer may not be heard of before a connection is given up: longer than a cut of the network
// that passes, which MPI's own connections survive as well.
const silence = 75 * time.Second

// KeepAlive lets the kernel find out that a peer has gone without a word.
func KeepAlive(conn net.Conn) {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return
	}
	_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: silence / 5, Interval: silence / 5, Count: 4})
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(silence.Milliseconds()))
	})
}
