package main

import (
	"crypto/tls"
	"fmt"
	"net"

	"github.com/urfave/cli/v2"

	"tapedeck/proxy"
)

// door is where clients come in: one listener for each address that the host
// name has, all on one port.
type door struct {
	listeners []net.Listener
	url       string // as clients type it
	loopback  bool
}

func doorFlags(address string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "listen", Aliases: []string{"l"}, Value: address, Usage: "listen on `ADDRESS`; port 0 takes a free one"},
		&cli.StringFlag{Name: "tls", Usage: "serve TLS: `auto` makes a self-signed certificate"},
		&cli.StringFlag{Name: "tls-cert", TakesFile: true, Usage: "serve TLS with the certificate in `FILE`"},
		&cli.StringFlag{Name: "tls-key", TakesFile: true, Usage: "the certificate's key, in `FILE`"},
	}
}

// openDoor listens as the flags say.
func openDoor(c *cli.Context) (*door, error) {
	address := c.String("listen")
	secure, err := doorTLS(c)
	if err != nil {
		return nil, err
	}
	listeners, loopback, err := proxy.Listen(c.Context, address)
	if err != nil {
		return nil, err
	}
	d := &door{listeners: listeners, loopback: loopback, url: "http://" + listeners[0].Addr().String()}
	if secure != nil {
		d.url = "https://" + listeners[0].Addr().String()
		for i, l := range d.listeners {
			d.listeners[i] = tls.NewListener(l, secure)
		}
	}
	return d, nil
}

// doorTLS returns how TLS is served, nil if it is not.
func doorTLS(c *cli.Context) (*tls.Config, error) {
	cert, key := c.String("tls-cert"), c.String("tls-key")
	switch mode := c.String("tls"); {
	case mode != "" && mode != "auto":
		return nil, usageError("%s: --tls is auto, not %q; a certificate goes into --tls-cert and --tls-key", c.Command.Name, mode)
	case mode == "auto" && cert != "":
		return nil, usageError("%s: --tls auto and --tls-cert exclude each other", c.Command.Name)
	case mode == "auto":
		host, _, err := net.SplitHostPort(c.String("listen"))
		if err != nil {
			return nil, usageError("%s: --listen %q: give a host and a port, such as localhost:8080", c.Command.Name, c.String("listen"))
		}
		return proxy.SelfSigned(host)
	case (cert == "") != (key == ""):
		return nil, usageError("%s: --tls-cert and --tls-key go together", c.Command.Name)
	case cert != "":
		return proxy.LoadTLS(cert, key)
	}
	return nil, nil
}

// close closes the listeners, which serving does too.
func (d *door) close() {
	for _, l := range d.listeners {
		l.Close()
	}
}

// sayWhere tells where it listens, in a line that a script can read.
func (w *world) sayWhere(d *door) {
	w.talk("listening on %s", d.url)
	if !d.loopback {
		w.alarm("this is not the loopback: whoever can reach the address can connect")
	}
}

// alarm prints a line of talk that must not be overlooked.
func (w *world) alarm(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if w.colours(w.stderr) {
		line = "\x1b[1;31m" + line + "\x1b[0m"
	}
	fmt.Fprintf(w.stderr, "tapedeck: %s\n", line)
}
