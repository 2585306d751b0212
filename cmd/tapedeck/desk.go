package main

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"tapedeck/player"
	"tapedeck/proxy"
)

// controlFlags are about the API by which tests drive the player.
func controlFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "control", Value: "/__tapedeck", Usage: "where the control API is: a `PATH`, or a port or an address of its own; off for nowhere"},
		&cli.StringFlag{Name: "control-token", Usage: "ask for `TOKEN` there"},
		&cli.StringSliceFlag{Name: "control-host", Usage: "answer there to the name `HOST` too, besides the loopback's; may be repeated"},
		&cli.StringSliceFlag{Name: "control-origin", Usage: "answer there to pages of `ORIGIN` too; may be repeated"},
	}
}

// playerControl reads what the flags say about the control API, and the address
// of its own that it is to have, "" for none.
func playerControl(c *cli.Context) (control player.Control, address string, err error) {
	control = player.Control{
		Token: c.String("control-token"), Hosts: c.StringSlice("control-host"), Origins: c.StringSlice("control-origin"),
	}
	where := c.String("control")
	switch _, _, split := net.SplitHostPort(where); {
	case where == "off":
		control.Off = true
	case strings.HasPrefix(where, "/"):
		control.Path = where
	case isPort(where):
		control.Apart, address = true, "127.0.0.1:"+where
	case split == nil:
		control.Apart, address = true, where
	default:
		return control, "", usageError("play: --control is a path such as /__tapedeck, a port, an address such as localhost:4082, or off, not %q", where)
	}
	return control, address, nil
}

func isPort(s string) bool {
	_, err := strconv.ParseUint(s, 10, 16)
	return err == nil
}

// desk is the address of its own that the control API has.
type desk struct {
	listeners []net.Listener
	server    *http.Server
}

// openDesk listens at an address for control calls. Beyond the loopback there
// must be a token, since whoever can reach it could drive the player.
func openDesk(ctx context.Context, address string, control player.Control) (*desk, error) {
	listeners, loopback, err := proxy.Listen(ctx, address)
	if err != nil {
		return nil, err
	}
	d := &desk{listeners: listeners, server: &http.Server{}}
	if !loopback && control.Token == "" {
		d.close()
		return nil, usageError("play: --control %s is beyond the loopback: add --control-token TOKEN", address)
	}
	return d, nil
}

func (d *desk) url() string { return "http://" + d.listeners[0].Addr().String() + "/__tapedeck" }

// close closes the listeners, which serving does too.
func (d *desk) close() {
	for _, l := range d.listeners {
		l.Close()
	}
}
