package main

import (
	"strings"
	"testing"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
)

func TestEnforcer(t *testing.T) {
	long := strings.Repeat("x", 16001)
	for _, c := range []struct {
		name, mode, sent string
		from             capture.Direction
		withheld         bool
		answer           string // of the beginning
	}{
		{"right", "client", `42["run:cancel",{"runId":"r"}]`, capture.FromClient, false, ""},
		{"other event", "client", `42["typing",{"on":true}]`, capture.FromClient, false, ""},
		{"unknown key", "client", `42["run:cancel",{"runId":"r","why":1}]`, capture.FromClient, true, `42["protocol:error",{"code":"INVALID_COMMAND","message":"command-key-unknown at \"/why\":`},
		{"too long", "client", `42["run:start",{"threadId":"t","messageId":"m","input":"` + long + `"}]`, capture.FromClient, true, `42["protocol:error",`},
		{"namespace", "client", `42/chat,["run:cancel",{}]`, capture.FromClient, true, `42/chat,["protocol:error",`},
		{"through the acknowledgement", "client", `427["thread:messages",{}]`, capture.FromClient, true, `437[{"ok":false,"error":{"code":"INVALID_COMMAND"`},
		{"the same in a namespace", "client", `42/chat,7["thread:messages",{}]`, capture.FromClient, true, `43/chat,7[{"ok":false`},
		{"gateway's, not asked for", "client", `42["run:event",{"v":1}]`, capture.FromGateway, false, ""},
		{"gateway's", "both", `42["run:event",{"v":1}]`, capture.FromGateway, true, ""},
		{"warning only", "both", `42["run:cancel",{"runId":""}]`, capture.FromClient, false, ""},
		{"no packet", "both", `hello`, capture.FromClient, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := newEnforcer(c.mode, protocol.Settings{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			v := e.Judge(&capture.Frame{Connection: 1, Kind: capture.Text, Direction: c.from, Data: []byte(c.sent), Size: int64(len(c.sent))})
			got := ""
			if len(v.Answers) > 0 {
				got = string(v.Answers[0])
			}
			if v.Withhold != c.withheld || !strings.HasPrefix(got, c.answer) || (got == "") != (c.answer == "") {
				t.Errorf("withheld %v, answer %s; want %v, %s", v.Withhold, got, c.withheld, c.answer)
			}
		})
	}
}

// TestEnforcerNewerGateway: a key that a newer gateway may know is no reason to
// refuse.
func TestEnforcerNewerGateway(t *testing.T) {
	e, err := newEnforcer("client", protocol.Settings{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	judge := func(d capture.Direction, data string) bool {
		return e.Judge(&capture.Frame{Connection: 1, Kind: capture.Text, Direction: d, Data: []byte(data), Size: int64(len(data))}).Withhold
	}
	command := `42["run:cancel",{"runId":"r","why":1}]`
	if !judge(capture.FromClient, command) {
		t.Error("an unknown key passed before the announcement")
	}
	judge(capture.FromGateway, `42["protocol:hello",{"protocol":{"major":1,"minor":18},"minClientMajor":1}]`)
	if judge(capture.FromClient, command) {
		t.Error("an unknown key was refused, though the gateway is newer")
	}
}

// TestEnforcerPlain: the plain form has the same answers in its own words.
func TestEnforcerPlain(t *testing.T) {
	e, err := newEnforcer("client", protocol.Settings{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	e.Frame(&capture.Frame{Position: 1, Connection: 1, Kind: capture.Open, Data: []byte(`{"transport":"websocket","target":"/ws"}`)})
	for sent, want := range map[string]string{
		`{"event":"run:cancel","data":{}}`:             `{"event":"protocol:error","data":{"code":"INVALID_COMMAND"`,
		`{"event":"thread:messages","data":{},"id":4}`: `{"ack":4,"data":{"ok":false,"error":{`,
	} {
		v := e.Judge(&capture.Frame{Connection: 1, Kind: capture.Text, Direction: capture.FromClient, Data: []byte(sent), Size: int64(len(sent))})
		if len(v.Answers) != 1 || !strings.HasPrefix(string(v.Answers[0]), want) {
			t.Errorf("%s: answered %s, want %s", sent, v.Answers, want)
		}
	}
	if _, err := newEnforcer("all", protocol.Settings{}, nil); err == nil {
		t.Error("--enforce all was taken")
	}
}
