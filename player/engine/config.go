package engine

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Config configures a Server. The zero value of a field means its default.
type Config struct {
	Path           string        // of Socket.IO, "/socket.io/" by default
	PlainPath      string        // of plain JSON sockets, "/ws" by default; "-" for none
	PingInterval   time.Duration // 25 s
	PingTimeout    time.Duration // 20 s
	ConnectTimeout time.Duration // 45 s, in which a CONNECT must come
	UpgradeTimeout time.Duration // 10 s
	MaxPayload     int           // bytes, 1,000,000; Socket.IO's maxHttpBufferSize
	// MaxQueue is how many bytes may wait for one client, 16 MiB by default. One
	// for whom more wait when something is sent to it is dropped.
	MaxQueue int
	// Recovery is how long a lost session can be taken up again by Socket.IO's
	// connection state recovery. Zero turns it off: no pid, no offsets.
	Recovery time.Duration
	// Origins are the origins that cross-origin requests may come from; "*" for
	// all, none for no CORS headers at all.
	Origins []string
	// Cookie is the name of a session cookie, "" for none.
	Cookie string

	// Connect is asked before a namespace is joined; a Refusal is sent as
	// CONNECT_ERROR, and closes a plain socket by 1008. It is not asked when a
	// session is recovered. Nil accepts "/", plain sockets and nothing else.
	Connect func(s *Socket) *Refusal
	// Joined is called when the CONNECT reply is on its way; what it emits
	// follows the reply.
	Joined func(s *Socket)
	// Event is called for each event, one at a time for a socket, in order.
	Event func(s *Socket, e Event)
	// Left is called once when a joined socket is gone. The reason is one of
	// those that socket.io gives its "disconnect" event, or [ReasonQueue].
	Left func(s *Socket, reason string)

	Logger *slog.Logger // nil discards
}

// Validate reports the first field that cannot be used.
func (c Config) Validate() error {
	c = c.withDefaults()
	for _, d := range []struct {
		name  string
		value time.Duration
	}{
		{"PingInterval", c.PingInterval}, {"PingTimeout", c.PingTimeout},
		{"ConnectTimeout", c.ConnectTimeout}, {"UpgradeTimeout", c.UpgradeTimeout}, {"Recovery", c.Recovery},
	} {
		if d.value < 0 {
			return fmt.Errorf("engine config: %s is %v, want a positive duration", d.name, d.value)
		}
	}
	if c.MaxPayload < 0 || c.MaxQueue < 0 {
		return fmt.Errorf("engine config: MaxPayload %d and MaxQueue %d must be positive", c.MaxPayload, c.MaxQueue)
	}
	if strings.HasPrefix(c.PlainPath+"/", c.Path) {
		return fmt.Errorf("engine config: PlainPath %q lies under Path %q, where Socket.IO answers", c.PlainPath, c.Path)
	}
	return nil
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.PingInterval, 25 * time.Second}, {&c.PingTimeout, 20 * time.Second},
		{&c.ConnectTimeout, 45 * time.Second}, {&c.UpgradeTimeout, 10 * time.Second},
	} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = 1_000_000
	}
	if c.MaxQueue == 0 {
		c.MaxQueue = 16 << 20
	}
	if c.Path == "" {
		c.Path = "/socket.io/"
	}
	c.Path = "/" + strings.Trim(c.Path, "/") + "/"
	if c.Path == "//" {
		c.Path = "/"
	}
	switch c.PlainPath {
	case "":
		c.PlainPath = "/ws"
	case "-":
	default:
		c.PlainPath = "/" + strings.Trim(c.PlainPath, "/")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}
