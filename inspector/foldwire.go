package inspector

import (
	"fmt"
	"strings"

	"tapedeck/protocol/capture"
	"tapedeck/protocol/wire"
)

// addWire makes rows of what is no message. In the timeline of a run, only what
// the proxy did and lost, and the ends of connections, have one.
func (t *Timeline) addWire(m *Moment) {
	if m.Packet != nil {
		if t.options.Wire {
			t.addPacket(m)
		}
		return
	}
	f := m.Frame
	switch f.Kind {
	case capture.Gap, capture.Act:
		t.addMark(m)
	case capture.End:
		t.addConnection(m)
	case capture.Open:
		if t.options.Wire {
			t.addConnection(m)
		}
	case capture.Request, capture.Response, capture.Body, capture.Done:
		if t.options.Wire {
			t.addExchange(m)
		}
	case capture.Ping, capture.Pong:
		if t.options.Wire && t.options.Housekeeping {
			t.addFrame(m)
		}
	default:
		if t.options.Wire {
			t.addFrame(m)
		}
	}
}

// note1 is a row that is complete when it begins.
func (t *Timeline) note1(m *Moment, kind Kind, name string, state State, note *Note) {
	r := t.row(m, kind, name, "")
	r.State, r.Detail = state, note
}

func (t *Timeline) addPacket(m *Moment) {
	p := m.Packet
	note := &Note{Bytes: int64(len(p.Raw)), Text: head(p.Raw)}
	switch p.Engine {
	case wire.Opaque:
		note.Said = p.Reason
		name := "opaque"
		if m.Frame != nil && m.Frame.Kind == capture.Binary {
			name = "binary"
		}
		t.note1(m, KindPacket, name, Failed, note)
		return
	case wire.EngineMessage, wire.PlainJSON:
	default:
		if t.options.Housekeeping {
			t.note1(m, KindPacket, engineName(p.Engine), Done, note)
		}
		return
	}
	name, state := socketName(p.Type), Done
	note.Text, note.Bytes = joinArgs(p.Args)
	switch p.Type {
	case wire.Event, wire.BinaryEvent:
		name = p.Name
	case wire.Ack, wire.BinaryAck:
		name = "answer to " + p.Asked
	case wire.ConnectError:
		state = Failed
	case wire.Connect, wire.Disconnect:
		if p.Namespace != "/" {
			name += " " + p.Namespace
		}
	}
	if n := len(p.Attachments); n > 0 {
		note.Said = FormatCount(n, "attachment")
	}
	if p.Reason != "" {
		state, note.Said = Failed, p.Reason
	}
	t.note1(m, KindPacket, name, state, note)
}

// joinArgs returns the beginning of an event's arguments, and how long they are.
func joinArgs(args [][]byte) (text string, size int64) {
	parts := make([]string, len(args))
	for i, a := range args {
		parts[i] = head(a)
		size += int64(len(a))
	}
	return strings.Join(parts, ", "), size
}

func engineName(e wire.Engine) string {
	names := [...]string{"open", "close", "ping", "pong", "message", "upgrade", "noop", "plain", "opaque"}
	if int(e) < len(names) {
		return names[e]
	}
	return fmt.Sprintf("engine-%d", e)
}

func socketName(t wire.Type) string {
	names := [...]string{"connect", "disconnect", "event", "ack", "connect error", "binary event", "binary ack"}
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("type-%d", t)
}

func (t *Timeline) addFrame(m *Moment) {
	f := m.Frame
	note := &Note{Bytes: f.Size, Text: head(f.Data)}
	if f.Kind == capture.Close && len(f.Data) >= 2 {
		note.Said = fmt.Sprintf("code %d", int(f.Data[0])<<8|int(f.Data[1]))
		note.Text, note.Bytes = string(f.Data[2:]), 0
	}
	t.note1(m, KindFrame, f.Kind.String(), Done, note)
}

func (t *Timeline) addConnection(m *Moment) {
	if m.Frame.Kind == capture.Open {
		note := &Note{}
		if o, err := capture.Detail[capture.Opening](m.Frame); err == nil {
			note.Text = o.Target
			note.Said = string(o.Transport)
			if o.Polling {
				note.Said += ", polling first"
			}
		}
		t.note1(m, KindConnection, "opened", Done, note)
		return
	}
	note, state := &Note{Said: "by the proxy"}, Done
	if e, err := capture.Detail[capture.Ending](m.Frame); err == nil {
		if by := e.By.String(); by != "" {
			note.Said = "by the " + by
		}
		if e.Code != 0 {
			note.Said += fmt.Sprintf(", code %d", e.Code)
		}
		note.Text = joinText(e.Reason, e.Error)
		if e.Error != "" || e.Code == 1006 {
			state = Failed
		}
	}
	t.note1(m, KindConnection, "closed", state, note)
}

func (t *Timeline) addMark(m *Moment) {
	if m.Frame.Kind == capture.Gap {
		note := &Note{Said: "the tape has a gap here"}
		if loss, err := capture.Detail[capture.Loss](m.Frame); err == nil {
			note.Said = fmt.Sprintf("%s of %s passed and could not be recorded", FormatCount(int(loss.Frames), "frame"), FormatSize(int64(loss.Bytes)))
			note.Text = loss.Error
		}
		t.note1(m, KindMark, "gap", Failed, note)
		return
	}
	note, name := &Note{Said: "the proxy acted here"}, "act"
	if deed, err := capture.Detail[capture.Deed](m.Frame); err == nil {
		name, note.Text, note.Said = deed.Did, joinText(deed.Rule, deed.Text), "by the proxy"
		if deed.Of != 0 {
			note.Said += fmt.Sprintf(": #%d", deed.Of)
		}
		if deed.Sent != 0 {
			note.Said += fmt.Sprintf(" as #%d", deed.Sent)
		}
	}
	t.note1(m, KindMark, name, Done, note)
}

func (t *Timeline) addExchange(m *Moment) {
	f := m.Frame
	key := f.Exchange
	if f.Kind == capture.Request {
		key = f.Position
	}
	r := t.flows[key]
	if r == nil {
		r = t.row(m, KindExchange, "http", "")
		r.Detail = &Exchange{}
		t.flows[key] = r
	} else {
		r.Last, r.End = m.Address(), m.At()
		t.note(r, m)
	}
	x := r.Detail.(*Exchange)
	switch f.Kind {
	case capture.Request:
		if h, err := capture.Detail[capture.RequestHead](f); err == nil {
			x.Method, x.Target = h.Method, h.Target
		}
	case capture.Response:
		if h, err := capture.Detail[capture.ResponseHead](f); err == nil {
			x.Status, x.Made = h.Status, h.Made
		}
	case capture.Body:
		if f.Direction == capture.FromClient {
			x.RequestBytes += f.Size
			x.RequestPieces++
		} else {
			x.ResponseBytes += f.Size
			x.ResponsePieces++
		}
	case capture.Done:
		r.State = Done
		if o, err := capture.Detail[capture.Outcome](f); err == nil {
			x.RequestBytes, x.ResponseBytes = max(x.RequestBytes, o.RequestBytes), max(x.ResponseBytes, o.ResponseBytes)
			x.Error = o.Error
		}
		if x.Error != "" || x.Status >= 400 {
			r.State = Failed
		}
		delete(t.flows, key)
	}
}

// isHousekeeping reports whether a moment only keeps a connection alive.
func isHousekeeping(m *Moment) bool {
	switch {
	case m.Message != nil:
		return false
	case m.Packet != nil:
		switch m.Packet.Engine {
		case wire.EnginePing, wire.EnginePong, wire.EngineNoop, wire.EngineUpgrade:
			return true
		}
		return false
	}
	return m.Frame.Kind == capture.Ping || m.Frame.Kind == capture.Pong
}
