package inspector

import (
	"context"
	"fmt"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
)

// reader folds a run up to any moment, into what a client would show then. It
// goes forwards frame by frame. Back, it goes from the fold at the beginning of
// its window, or else from the beginning of the run.
type reader struct {
	source Source
	chain  []conversation.Run
	thread string

	merge  *merge
	feed   *Feed
	base   *conversation.Fold // as it was before the messages of the window
	window []protocol.Message
	bytes  int
	ahead  []protocol.Message // read, and not folded in yet
}

// Bounds of a reader's window: a step back within it costs less than a key
// press, and it holds little of a run of any length.
const (
	windowMessages = 1024
	windowBytes    = 4 << 20
)

func newReader(source Source, chain []conversation.Run, thread string) *reader {
	r := &reader{source: source, chain: chain, thread: thread}
	r.rewind()
	return r
}

func (r *reader) rewind() {
	r.merge, r.feed = newMerge(r.chain), NewFeed([]protocol.Finding{})
	r.base, r.window, r.bytes, r.ahead = conversation.NewFold(r.thread, stallAfter), nil, 0, nil
}

// at returns what a client would show after the message at an address.
func (r *reader) at(ctx context.Context, a capture.Address) (*conversation.Transcript, error) {
	a.Packet = max(a.Packet, 1)
	if len(r.window) > 0 && r.window[0].Address.Compare(a) > 0 {
		r.rewind()
	}
	if err := r.readTo(ctx, a); err != nil {
		return nil, err
	}
	fold := r.base.Clone()
	for i := range r.window {
		if m := &r.window[i]; passed(m).Compare(a) <= 0 {
			fold.Add(m)
		}
	}
	return fold.Transcript(), nil
}

// passed is the address of a message, counted from its frame's first packet.
func passed(m *protocol.Message) capture.Address {
	return capture.Address{Position: m.Address.Position, Packet: max(m.Address.Packet, 1)}
}

// readTo has the window reach to an address.
func (r *reader) readTo(ctx context.Context, a capture.Address) error {
	for {
		for len(r.ahead) > 0 && passed(&r.ahead[0]).Compare(a) <= 0 {
			r.push(r.ahead[0])
			r.ahead = r.ahead[1:]
		}
		if len(r.ahead) > 0 {
			return nil
		}
		f, err := r.merge.next(ctx, r.source)
		if err != nil {
			return fmt.Errorf("fold run %q: %w", r.chain[0].ID, err)
		}
		if f == nil {
			r.merge.extend(r.chain) // more may have come when we are asked again
			return nil
		}
		for _, m := range r.feed.Frame(f) {
			if kept := keep(&m); kept.Message != nil {
				r.ahead = append(r.ahead, *kept.Message)
			}
		}
	}
}

// push puts a message into the window, and folds what gets too old for it.
func (r *reader) push(m protocol.Message) {
	r.window = append(r.window, m)
	r.bytes += len(m.Payload)
	if len(r.window) < 2*windowMessages && (r.bytes < 2*windowBytes || len(r.window) < 2) {
		return
	}
	half := len(r.window) / 2
	for i := range r.window[:half] {
		r.base.Add(&r.window[i])
		r.bytes -= len(r.window[i].Payload)
	}
	r.window = append([]protocol.Message(nil), r.window[half:]...)
}

// serve answers what is asked until ctx ends. Of questions that come meanwhile,
// the last one counts.
func (r *reader) serve(ctx context.Context, tell teller, asked <-chan capture.Address) {
	for {
		select {
		case <-ctx.Done():
			return
		case a := <-asked:
			t, err := r.at(ctx, a)
			if !tell(func(s *Screen) { s.setTranscript(a, t, err) }) {
				return
			}
		}
	}
}
