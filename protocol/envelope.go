package protocol

import "slices"

// parts are the values of an envelope, as JSON; nil where there is none.
type parts struct {
	v, thread, run, sequence, event []byte
	// typ is the event's type and fields are its other members that have a slot.
	typ    []byte
	fields [slots][]byte
	// shape is that of typ, nil if the page knows none.
	shape *eventShape
}

// A slot is the place of an event's field in parts.
type slot uint8

const (
	noSlot slot = iota
	slotMessageID
	slotRole
	slotDelta
	slotToolCallID
	slotToolCallName
	slotParentMessageID
	slotInterruptID
	slotPayload
	slotTaskID
	slotChildThreadID
	slotName
	slotStatus
	slotDetached
	slotCode
	slotMessage
	slotTodos
	slotContent
	// Fields that an event may have whatever its type.
	slotThreadID
	slotRunID
	slotTimestamp
	slots
	// Places outside the fields of an event.
	slotVersion
	slotThread
	slotRun
	slotSequence
	slotEvent
	slotType
	allSlots
)

// routeOf returns the slot of an envelope's member, noSlot if nobody looks at it.
func routeOf(name []byte) slot {
	switch string(name) {
	case "v":
		return slotVersion
	case "threadId":
		return slotThread
	case "runId":
		return slotRun
	case "sequence":
		return slotSequence
	case "event":
		return slotEvent
	}
	return noSlot
}

// slotOf returns the slot of an event's member, noSlot if nobody looks at it.
func slotOf(name []byte) slot {
	switch string(name) {
	case "type":
		return slotType
	case "messageId":
		return slotMessageID
	case "role":
		return slotRole
	case "delta":
		return slotDelta
	case "toolCallId":
		return slotToolCallID
	case "toolCallName":
		return slotToolCallName
	case "parentMessageId":
		return slotParentMessageID
	case "interruptId":
		return slotInterruptID
	case "payload":
		return slotPayload
	case "taskId":
		return slotTaskID
	case "childThreadId":
		return slotChildThreadID
	case "name":
		return slotName
	case "status":
		return slotStatus
	case "detached":
		return slotDetached
	case "code":
		return slotCode
	case "message":
		return slotMessage
	case "todos":
		return slotTodos
	case "content":
		return slotContent
	case "threadId":
		return slotThreadID
	case "runId":
		return slotRunID
	case "timestamp":
		return slotTimestamp
	}
	return noSlot
}

// put gives a value its slot.
func (p *parts) put(s slot, value []byte) {
	switch s {
	case noSlot:
	case slotVersion:
		p.v = value
	case slotThread:
		p.thread = value
	case slotRun:
		p.run = value
	case slotSequence:
		p.sequence = value
	case slotEvent:
		p.event = value
	case slotType:
		p.typ = value
	default:
		p.fields[s] = value
	}
}

// read takes an envelope apart, trouble or not. Of a name that stands twice the
// last one counts.
func (p *parts) read(payload []byte) (ok bool) {
	*p = parts{}
	envelope, ok := readObject(payload)
	for _, m := range envelope {
		p.put(routeOf([]byte(m.name)), m.value)
	}
	event, _ := readObject(p.event)
	for _, m := range event {
		p.put(slotOf([]byte(m.name)), m.value)
	}
	p.shape = shapeOf(p.typ)
	return ok
}

// fill sets e to what p says, as far as it can be read.
func (k *keeper) fill(e *Envelope, p *parts) {
	*e = Envelope{ThreadID: k.id(slotThread, p.thread), RunID: k.id(slotRun, p.run)}
	if n, ok := integerOf(p.v); ok && n == int64(int(n)) {
		e.V = int(n)
	}
	e.Sequence, _ = integerOf(p.sequence)
	if kindOf(p.event) != isObject {
		return
	}
	e.Event.Raw = p.event
	shape := p.shape
	if shape == nil {
		e.Event.Type = EventType(k.id(slotType, p.typ))
		return
	}
	e.Event.Type = shape.typ
	for i := range shape.fields {
		f := &shape.fields[i]
		if value := p.fields[f.slot]; value != nil {
			k.set(&e.Event, f.slot, value)
		}
	}
}

// set sets the field of e that has this slot.
func (k *keeper) set(e *Event, s slot, value []byte) {
	switch s {
	case slotMessageID:
		e.MessageID = k.id(s, value)
	case slotRole:
		e.Role = k.id(s, value)
	case slotDelta:
		e.Delta = k.text(value)
	case slotToolCallID:
		e.ToolCallID = k.id(s, value)
	case slotToolCallName:
		e.ToolCallName = k.id(s, value)
	case slotParentMessageID:
		e.ParentMessageID = k.id(s, value)
	case slotInterruptID:
		e.InterruptID = k.id(s, value)
	case slotTaskID:
		e.TaskID = k.id(s, value)
	case slotChildThreadID:
		e.ChildThreadID = k.id(s, value)
	case slotName:
		e.SubagentName = k.id(s, value)
	case slotStatus:
		e.Status = k.id(s, value)
	case slotDetached:
		e.Detached = string(value) == "true"
	case slotCode:
		if e.Code = k.id(s, value); kindOf(value) == isNumber {
			e.Code = string(value)
		}
	case slotMessage:
		if e.Type == RunError {
			e.Message = k.text(value)
		} else {
			e.Body = value
		}
	case slotPayload, slotTodos, slotContent:
		e.Body = value
	}
}

// eventShape is a shape of eventShapes, made ready for looking up.
type eventShape struct {
	typ    EventType
	fields []slotted
}

// slotted is a field with its slot.
type slotted struct {
	field
	slot slot
}

// has reports whether an event of the shape has a field of that slot.
func (s *eventShape) has(slot slot) bool {
	return slices.ContainsFunc(s.fields, func(f slotted) bool { return f.slot == slot })
}

var shapesByType = func() map[string]*eventShape {
	shapes := make(map[string]*eventShape, len(eventShapes))
	for typ, fields := range eventShapes {
		shape := &eventShape{typ: typ}
		for _, f := range fields {
			shape.fields = append(shape.fields, slotted{f, slotOf([]byte(f.name))})
		}
		shapes[string(typ)] = shape
	}
	return shapes
}()

// shapeOf returns the shape of the event whose type's JSON is typ, nil if the
// type is unknown or no string.
func shapeOf(typ []byte) *eventShape {
	if kindOf(typ) != isString {
		return nil
	}
	if shape := shapesByType[string(inside(typ))]; shape != nil {
		return shape
	}
	if !hasEscape(typ) {
		return nil
	}
	return shapesByType[textOf(typ)]
}
