package agentapi

// Sessions are those in which a launcher started processes on its hosts, or tried to.
type Sessions struct {
	// Count is the number of all, and First when the first one began, in milliseconds since 1970.
	Count int32 `json:"count"`
	First int64 `json:"first"`
	// List are some of them, at most MaxSessions: those that failed, and those whose ranks started last. A termination message has as many
	// as it has room for.
	List []Session `json:"list,omitempty"`
}

// MaxSessions is the most sessions in a list.
const MaxSessions = 16

// Session is a session on a host. Its times are in milliseconds.
type Session struct {
	Host string `json:"host"`
	// At is when the first attempt to connect was made, since Sessions.First.
	At int64 `json:"at"`
	// Connected and Ranks are when the host was connected and when the first process of a rank ran there, since At; 0 if that was not
	// observed.
	Connected int64 `json:"connected,omitempty"`
	Ranks     int64 `json:"ranks,omitempty"`
	// End is when the session ended, since At.
	End int64 `json:"end"`
	// Code is why it failed; empty if it did not.
	Code Code `json:"code,omitempty"`
}
