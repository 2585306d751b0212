package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"tapedeck/player"
)

// gateway is a player that is being served.
type gateway struct {
	player *player.Gateway
	server *http.Server
	desk   *desk // nil if the control API has no address of its own
}

// newGateway makes a player that is ready to be served.
func newGateway(cfg player.Config) (*gateway, error) {
	p, err := player.New(cfg)
	if err != nil {
		return nil, usageError("%v", err)
	}
	return &gateway{player: p, server: &http.Server{Handler: p}}, nil
}

// serve serves all listeners, and the desk's, until ctx is done, or one of them
// fails.
func (g *gateway) serve(ctx context.Context, listeners ...net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error)
	serving := 0
	start := func(s *http.Server, listeners []net.Listener) {
		for _, l := range listeners {
			go func() { results <- serveOne(ctx, s, l) }()
		}
		serving += len(listeners)
	}
	start(g.server, listeners)
	if g.desk != nil {
		start(g.desk.server, g.desk.listeners)
	}
	var errs []error
	for range serving {
		if err := <-results; err != nil {
			errs = append(errs, err)
			cancel()
		}
	}
	return errors.Join(errs...)
}

func serveOne(ctx context.Context, s *http.Server, l net.Listener) error {
	stop := context.AfterFunc(ctx, func() { l.Close() })
	err := s.Serve(l)
	if !stop() || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("accept connections on %s: %w", l.Addr(), err)
}

// close ends all sockets and runs.
func (g *gateway) close(ctx context.Context) error {
	err := errors.Join(g.player.Close(ctx), g.server.Close())
	if g.desk != nil {
		err = errors.Join(err, g.desk.server.Close())
	}
	return err
}

// backstage is a gateway on a loopback port of its own, behind a proxy.
type backstage struct {
	*gateway
	url  string
	stop context.CancelFunc
	done chan error
}

// startBackstage serves a player on a free port of the loopback.
func startBackstage(cfg player.Config) (*backstage, error) {
	g, err := newGateway(cfg)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start the built-in gateway: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := &backstage{gateway: g, url: "http://" + l.Addr().String(), stop: cancel, done: make(chan error, 1)}
	go func() { b.done <- g.serve(ctx, l) }()
	return b, nil
}

// end ends the gateway. A nil backstage is none.
func (b *backstage) end(ctx context.Context) error {
	if b == nil {
		return nil
	}
	err := b.gateway.close(ctx)
	b.stop()
	return errors.Join(err, <-b.done)
}
