package engine

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tapedeck/protocol/wire"
)

func TestParsePacket(t *testing.T) {
	raw := func(values ...string) []json.RawMessage {
		args := []json.RawMessage{}
		for _, v := range values {
			args = append(args, json.RawMessage(v))
		}
		return args
	}
	for _, test := range []struct {
		in   string
		want received
		err  string
	}{
		{in: "0", want: received{kind: wire.Connect, namespace: "/"}},
		{in: `0/admin,{"a":1}`, want: received{kind: wire.Connect, namespace: "/admin", auth: json.RawMessage(`{"a":1}`)}},
		{in: "0/admin", want: received{kind: wire.Connect, namespace: "/admin"}},
		{in: "1/admin,", want: received{kind: wire.Disconnect, namespace: "/admin"}},
		{in: `2["e"]`, want: received{kind: wire.Event, namespace: "/", name: "e", args: raw()}},
		{in: `2/a,12["e",1, {"x": [2]} ]`, want: received{kind: wire.Event, namespace: "/a", id: "12", name: "e", args: raw("1", `{"x": [2]}`)}},
		{in: `2["\u00e9\ud800"]`, want: received{kind: wire.Event, namespace: "/", name: "é\uFFFD", args: raw()}},
		{in: `2[-1.5,"x"]`, want: received{kind: wire.Event, namespace: "/", name: "-1.5", args: raw(`"x"`)}},
		{in: `2 ["e"]`, want: received{kind: wire.Event, namespace: "/", name: "e", args: raw()}},
		{in: "2", want: received{kind: wire.Event, namespace: "/"}},
		{in: `30[1]`, want: received{kind: wire.Ack, namespace: "/", id: "0", args: raw("1")}},
		{in: "30", want: received{kind: wire.Ack, namespace: "/", id: "0"}},
		{in: `4{"message":"x"}`, want: received{kind: wire.ConnectError, namespace: "/"}},
		{in: `510-["e"]`, want: received{kind: wire.BinaryEvent, namespace: "/", name: "e", args: raw(), missing: 10, body: json.RawMessage(`["e"]`)}},
		{in: `61-/a,7[]`, want: received{kind: wire.BinaryAck, namespace: "/a", id: "7", args: raw(), missing: 1, body: json.RawMessage(`[]`)}},
		{in: "", err: "it is empty"},
		{in: "7", err: "unknown packet type"},
		{in: "x", err: "unknown packet type"},
		{in: "0[]", err: "no JSON object"},
		{in: "0null", err: "no JSON object"},
		{in: "1{}", err: "no payload"},
		{in: "4[]", err: "an object or a string"},
		{in: `2{"a":1}`, err: "no JSON array"},
		{in: `2["e"] x`, err: "invalid character"},
		{in: `2["e"`, err: "unexpected end"},
		{in: "2[]", err: "without a name"},
		{in: "2[null]", err: "a string or a number"},
		{in: "2[true]", err: "a string or a number"},
		{in: `2[{}]`, err: "a string or a number"},
		{in: `2["disconnecting"]`, err: "reserved"},
		{in: `2["\u0063onnect"]`, err: "reserved"},
		{in: "3{}", err: "no JSON array"},
		{in: `5["e"]`, err: "number of attachments"},
		{in: `5-["e"]`, err: "number of attachments"},
		{in: `50-["e"]`, err: "number of attachments"},
		{in: `5+1-["e"]`, err: "number of attachments"},
		{in: `51.0-["e"]`, err: "number of attachments"},
		{in: `511-["e"]`, err: "11 attachments, at most 10"},
		{in: `599999999999999999999-["e"]`, err: "number of attachments"},
	} {
		got, err := parsePacket([]byte(test.in))
		if test.err != "" {
			if err == nil || !strings.Contains(err.Error(), test.err) {
				t.Errorf("%s: got error %v, want %q", test.in, err, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", test.in, err)
			continue
		}
		if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(received{})); diff != "" {
			t.Errorf("%s: -want +got\n%s", test.in, diff)
		}
	}
}

// FuzzParsePacket: whatever comes, there is no panic, and what can be read says
// the same when it is written again.
func FuzzParsePacket(f *testing.F) {
	for _, seed := range []string{
		"0", `0/admin,{"a":1}`, `2["e",1,{"x":[2]}]`, `2/a,12["e"]`, `51-["e",{"_placeholder":true,"num":0}]`,
		`61-7[{"num":0,"_placeholder":true}]`, `3999999999999999999999[1]`, `2["connect"]`, "42", "", `2[`, `5999-[]`,
		`2["\ud800"]`, "2[\"\xff\"]", `51-["q",{"_placeholder":true,"num":"splice"}]`, "2[1e400]",
	} {
		f.Add([]byte(seed), []byte{1})
	}
	f.Fuzz(func(t *testing.T, text, attachment []byte) {
		p, err := parsePacket(text)
		if err != nil {
			return
		}
		binary := p.missing > 0
		for p.missing > 0 {
			done, err := p.attach(attachment)
			if err != nil {
				return
			}
			if done != (p.missing == 0) {
				t.Fatalf("%q: done is %v with %d attachments missing", text, done, p.missing)
			}
		}
		if p.kind != wire.Ack && p.kind != wire.BinaryAck || p.args == nil {
			return
		}
		packets := encodeAck(p.namespace, p.id, p.attachments, p.args)
		again, err := parsePacket(packets[0].payload[1:])
		if err != nil {
			t.Fatalf("%q was written as %q: %v", text, packets[0].payload, err)
		}
		if binary != (again.missing > 0) || again.id != p.id || again.namespace != p.namespace || len(again.args) != len(p.args) {
			t.Fatalf("%q was written as %q", text, packets[0].payload)
		}
		for i := range p.args {
			if !bytes.Equal(p.args[i], again.args[i]) {
				t.Fatalf("%q: argument %d was written as %q", text, i, again.args[i])
			}
		}
	})
}

// FuzzPayload: whatever a POST holds, a session takes it or ends, and another
// session is as before.
func FuzzPayload(f *testing.F) {
	for _, seed := range []string{
		"40", "40\x1e42[\"message\",1]", "40\x1e451-[\"message\",{\"_placeholder\":true,\"num\":0}]\x1ebAQID",
		"\x1e", "40\x1e\x1e3", "b", "b====", "b\x00", "41", "1", "5", "6", "2", "2probe", "0{}", "\xff", "40/custom\x1e41/custom",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		s := New(echo())
		c := s.open(httptest.NewRequest("GET", "/socket.io/", nil), nil, false)
		other := s.open(httptest.NewRequest("GET", "/socket.io/", nil), nil, false)
		c.takePayload(body)
		other.takePayload([]byte("40\x1e42[\"message\",1]"))
		other.mu.Lock()
		got := string(polled(other.queue[2:]))
		other.mu.Unlock()
		if got != `42["auth",{}]`+"\x1e"+`42["message-back",1]` {
			t.Errorf("after %q another session said %q", body, got)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestEncodings(t *testing.T) {
	one := []json.RawMessage{json.RawMessage("1")}
	for _, test := range []struct {
		got  []packet
		want string
	}{
		{encodeEvent("/", "", "e", nil, one, ""), `42["e",1]`},
		{encodeEvent("/a", "7", "é<\"\n\xff", nil, nil, ""), "42/a,7[\"é<\\\"\\n\uFFFD\"]"},
		{encodeEvent("/", "", "e", nil, []json.RawMessage{nil, {}}, "off"), `42["e",null,null,"off"]`},
		{encodeEvent("/", "", "e", [][]byte{{1}, {}}, one, ""), "452-[\"e\",1]\x1ebAQ==\x1eb"},
		{encodeEvent("", "3", "e", nil, one, ""), `{"event":"e","data":1,"id":3}`},
		{encodeArray("/", json.RawMessage(`["e" , 1 ] `), nil, ""), `42["e" , 1 ] `},
		{encodeArray("/", json.RawMessage(`["e" , 1 ] `), nil, "off"), `42["e" , 1 ,"off"] `},
		{encodeArray("/", json.RawMessage(`"no array"`), nil, "off"), `42"no array"`},
		{encodeAck("/", "0", nil, nil), "430[]"},
		{encodeAck("/a", "12", [][]byte{{1}}, one), "461-/a,12[1]\x1ebAQ=="},
		{encodeAck("", "12", nil, nil), `{"ack":12}`},
		{[]packet{connectReply("/a", "s", "p")}, `40/a,{"sid":"s","pid":"p"}`},
		{[]packet{connectError("/", &Refusal{Message: `<"`, Data: json.RawMessage(`{"a": 1}`)})}, `44{"message":"<\"","data":{"a": 1}}`},
		{[]packet{disconnectPacket("/")}, "41"},
		{[]packet{disconnectPacket("/a")}, "41/a,"},
	} {
		if got := string(polled(test.got)); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
