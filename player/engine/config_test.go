package engine

import (
	"strings"
	"testing"
	"time"
)

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		config Config
		err    string
	}{
		{Config{}, ""},
		{Config{Path: "gw", PlainPath: "ws/plain/"}, ""},
		{Config{Path: "/", PlainPath: "-"}, ""},
		{Config{PingInterval: -time.Second}, "PingInterval is -1s"},
		{Config{Recovery: -1}, "Recovery is -1ns"},
		{Config{MaxPayload: -5}, "MaxPayload -5"},
		{Config{MaxQueue: -5}, "MaxQueue -5"},
		{Config{PlainPath: "/socket.io/plain"}, `PlainPath "/socket.io/plain" lies under Path "/socket.io/"`},
		{Config{Path: "/ws"}, `PlainPath "/ws" lies under Path "/ws/"`},
		{Config{Path: "/"}, "lies under"},
	} {
		err := test.config.Validate()
		if test.err == "" && err != nil || test.err != "" && (err == nil || !strings.Contains(err.Error(), test.err)) {
			t.Errorf("%+v: got %v, want %q", test.config, err, test.err)
		}
	}
}

// TestPaths: a path is taken with or without its slashes, and what lies under it
// is Socket.IO's (E08).
func TestPaths(t *testing.T) {
	h := serve(t, Config{Path: "gw/socket.io", PlainPath: "gw/ws/"})
	for target, want := range map[string]int{
		"/gw/socket.io/?EIO=4&transport=polling":    200,
		"/gw/socket.io/xyz?EIO=4&transport=polling": 200,
		"/gw/socket.io?EIO=4&transport=polling":     404,
		"/socket.io/?EIO=4&transport=polling":       404,
		"/gw/ws":                                    426,
		"/gw/ws/":                                   426,
		"/gw/ws/x":                                  404,
	} {
		if got := h.do("GET", target, ""); got.status != want {
			t.Errorf("GET %s: got %d, want %d", target, got.status, want)
		}
	}
}
