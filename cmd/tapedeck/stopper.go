package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// stopper turns signals into contexts: the first one ends first, and the second
// one second, which cuts short what the first began.
type stopper struct {
	first, second context.Context
	stop, cut     context.CancelFunc
	signals       chan os.Signal
	done          chan struct{}
}

func newStopper() *stopper {
	s := &stopper{signals: make(chan os.Signal, 2), done: make(chan struct{})}
	s.first, s.stop = context.WithCancel(context.Background())
	s.second, s.cut = context.WithCancel(context.Background())
	signal.Notify(s.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go s.run()
	return s
}

func (s *stopper) run() {
	defer close(s.done)
	for range s.signals {
		if s.first.Err() != nil {
			s.cut()
			return
		}
		s.stop()
	}
}

// cutShort reports whether a second signal came.
func (s *stopper) cutShort() bool { return s.second.Err() != nil }

// release gives the signals back.
func (s *stopper) release() {
	signal.Stop(s.signals)
	close(s.signals)
	<-s.done
	s.stop()
	s.cut()
}
