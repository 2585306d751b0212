package recorder

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"tapedeck/protocol/capture"
)

const planted = "S3CR3T-5f2c9a77d1"

// secretFrames carry a secret wherever one may be.
func secretFrames(t *testing.T) []capture.Frame {
	t.Helper()
	detail := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	target := "/socket.io/?EIO=4&token=" + planted
	made := []capture.Frame{
		{Kind: capture.Open, Data: detail(capture.Opening{Transport: capture.SocketIO, Target: target})},
		{Kind: capture.Request, Direction: capture.FromClient, Data: detail(capture.RequestHead{Method: "GET", Target: target, Header: http.Header{
			"Authorization": {"Bearer " + planted}, "Cookie": {"session=" + planted}, "X-Api-Key": {planted}, "Sec-Websocket-Protocol": {"chat, bearer." + planted}}})},
		{Kind: capture.Response, Direction: capture.FromGateway, Data: detail(capture.ResponseHead{Status: 200, Header: http.Header{"Set-Cookie": {"session=" + planted + "; Path=/"}}})},
		{Kind: capture.Text, Direction: capture.FromClient, Data: fmt.Appendf(nil, `40{"token":%q}`, planted)},
		{Kind: capture.Polling, Direction: capture.FromClient, Data: fmt.Appendf(nil, "40{\"token\":%q}", planted)},
		{Kind: capture.Text, Direction: capture.FromGateway, Data: []byte(`42["run:event",{"v":1}]`)},
	}
	for i := range made {
		f := &made[i]
		f.Position, f.Connection, f.Size = capture.Position(i+1), 1, int64(len(f.Data))
		if f.Kind == capture.Request || f.Kind == capture.Response {
			f.Exchange = 2
		}
	}
	return made
}

// hidden reports in how many values of a tape, decompressed, the secret is.
func hidden(t *testing.T, path string) (count int) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	count = bytes.Count(text, []byte(planted))
	r := open(t, path)
	defer r.Close()
	for _, f := range readAll(t, r) {
		count += bytes.Count(f.Data, []byte(planted))
	}
	err = r.view(t.Context(), func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error {
			return b.ForEach(func(k, v []byte) error {
				count += bytes.Count(v, []byte(planted))
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return count
}

// No secret touches the disk, unless it was asked for (B12).
func TestNoSecretIsRecorded(t *testing.T) {
	for _, keep := range []bool{false, true} {
		path := tapePath(t)
		w, s := newTape(t, path, WriterOptions{KeepSecrets: keep})
		all := secretFrames(t)
		write(w, all)
		if diff := diffFrames(secretFrames(t), all); diff != "" {
			t.Errorf("what passes was touched: %s", diff)
		}
		closeWriter(t, w, 0)
		if s.Secrets != keep {
			t.Errorf("with KeepSecrets %v the session says %v", keep, s.Secrets)
		}
		if n := hidden(t, path); (n > 0) != keep {
			t.Errorf("with KeepSecrets %v the secret is %d times on the tape", keep, n)
		}
		for _, f := range readAll(t, open(t, path))[:5] {
			if !keep && (!f.Flags.Has(capture.Redacted) || !strings.Contains(string(f.Data), "redacted-")) {
				t.Errorf("the %s frame does not say that it was redacted: %s", f.Kind, f.Data)
			}
		}
	}
}

// The same secret has the same token in all sessions of a tape, also of one that
// was repaired, and another on another tape.
func TestTokensAreTheTapes(t *testing.T) {
	token := func(path string, p capture.Position) string {
		t.Helper()
		r := open(t, path)
		defer r.Close()
		some, err := r.Frames(t.Context(), p, 1)
		if err != nil || len(some) != 1 {
			t.Fatalf("%d frames, %v", len(some), err)
		}
		return string(some[0].Data)
	}
	recordSecret := func(path string) capture.Position {
		w, s := newTape(t, path, WriterOptions{})
		w.Frame(&capture.Frame{Position: s.First, Kind: capture.Text, Direction: capture.FromClient, Data: fmt.Appendf(nil, `40{"token":%q}`, planted)})
		closeWriter(t, w, 0)
		return s.First
	}
	path, other := tapePath(t), tapePath(t)
	first := token(path, recordSecret(path))
	if again := token(path, recordSecret(path)); again != first {
		t.Errorf("the second session has %s, the first %s", again, first)
	}
	if another := token(other, recordSecret(other)); another == first {
		t.Errorf("another tape has %s too", another)
	}
	if _, err := Repair(t.Context(), path, path+"2"); err != nil {
		t.Fatal(err)
	}
	if repaired := token(path+"2", recordSecret(path+"2")); repaired != first {
		t.Errorf("the repaired tape has %s, the first %s", repaired, first)
	}
}
