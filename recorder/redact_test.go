package recorder

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"tapedeck/protocol/capture"
)

var testKey = []byte("the key of a tape under test")

func testRedactor(tb testing.TB, extra ...string) *redactor {
	tb.Helper()
	r, err := newRedactor(testKey, extra, false)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// marked is a secret in what a test wants, ⟨such⟩.
var marked = regexp.MustCompile(`⟨([^⟩]*)⟩`)

// withTokens puts tokens in the place of marked secrets.
func withTokens(r *redactor, want string) string {
	return marked.ReplaceAllStringFunc(want, func(s string) string { return r.token([]byte(marked.FindStringSubmatch(s)[1])) })
}

// TestRedactMessages: in want, ⟨what⟩ is hidden stands in brackets, and all
// around it is as it was.
func TestRedactMessages(t *testing.T) {
	for _, c := range []struct {
		name  string
		from  string // "<" or ">", and the kind
		extra []string
		want  string
		in    string // if it is not what remains when want's brackets are taken off
	}{
		{name: "CONNECT", from: "> text", want: `40{"token":"⟨S3CR3T⟩"}`},
		{name: "CONNECT of a namespace", from: "> text", want: `40/admin,{"token":"⟨S3CR3T⟩","user":{"pin":"⟨1234⟩"}, "list":[ "⟨a⟩" ]}`},
		{name: "a number", from: "> text", want: `40{"pin":"⟨1234⟩","flag":true,"none":null,"empty":""}`, in: `40{"pin":1234,"flag":true,"none":null,"empty":""}`},
		{name: "recovery stays", from: "> text", want: `40{"pid":"e_7NB4Q","offset":"Q8lKFHF","token":"⟨S3CR3T⟩","deep":{"pid":"⟨x⟩"}}`},
		{name: "escapes", from: "> text", want: `40{"token":"⟨S3CR3T-é⟩"}`, in: `40{"token":"S3CR3T\u002d\u00e9"}`},
		{name: "cut in a string", from: "> text", want: `40{"a":"⟨x⟩","token":"⟨S3CR⟩`, in: `40{"a":"x","token":"S3CR`},
		{name: "no JSON", from: "> text", want: `40{"token": ⟨S3CR3T}⟩`, in: `40{"token": S3CR3T}`},
		{name: "behind the JSON", from: "> text", want: `40{"token":"⟨a⟩"} ⟨b⟩`, in: `40{"token":"a"} b`},
		{name: "an older client's namespace", from: "> text", want: `40/admin?token=⟨S3CR3T⟩&x=1,`},
		{name: "the gateway's CONNECT", from: "< text", want: `40{"sid":"jz2QGrH6WCZxoLRbAAAA","pid":"e_7NB4Q"}`},
		{name: "an event", from: "> text", want: `42["run:start",{"token":"stays","input":"40{\"token\":1}"}]`},
		{name: "a polling body", from: "> poll", want: "40{\"token\":\"⟨S3CR3T⟩\"}\x1e42[\"e\",{\"token\":\"stays\"}]\x1e40/a,{\"b\":\"⟨c⟩\"}"},
		{name: "an auth event", from: "> text", want: `42/a,7["authenticate",{"token":"⟨S3CR3T⟩","user":"bob"},"⟨bare⟩"]`},
		{name: "an auth event with spaces", from: "> text", want: `42[ "auth" , {"accessToken" : "⟨S3CR3T⟩"}]`},
		{name: "plain auth", from: "> text", want: `{"event":"auth","data":{"token":"⟨S3CR3T⟩","user":"bob","deep":{"api_key":"⟨k⟩"}}}`},
		{name: "plain auth, a bare token", from: "> text", want: `{"data":"⟨S3CR3T⟩","id":1,"event":"authenticate"}`},
		{name: "plain, no auth", from: "> text", want: `{"event":"run:start","data":{"token":"auth","auth":"auth"}}`},
		{name: "what the gateway says of auth", from: "< text", want: `{"event":"auth","data":{"token":"t"}}`},
		{name: "a field", from: "< text", extra: []string{"password"},
			want: `42["run:event",{"password":"⟨S3CR3T⟩","n":{"password" : "⟨12⟩"},"the password":"x","Password":"y"}]`,
			in:   `42["run:event",{"password":"S3CR3T","n":{"password" : 12},"the password":"x","Password":"y"}]`},
		{name: "a field that is an object", from: "< text", extra: []string{"card"}, want: `42["e",{"card":{"no":"⟨4711⟩","cvc":["⟨1⟩"]},"x":"y"}]`},
		{name: "a field of JSON in a string", from: "< text", extra: []string{"password"},
			want: `42["e",{"delta":"{\"password\":\"⟨S3"CR\⟩\",\"x\":1}"}]`,
			in:   `42["e",{"delta":"{\"password\":\"S3\\\"CR\\\\\",\"x\":1}"}]`},
		{name: "a field of half JSON in a string", from: "< text", extra: []string{"password"}, want: `42["e",{"delta":"{\"password\":\"⟨S3CR⟩"},1]`},
		{name: "a field in a piece of a body", from: "< body", extra: []string{"password"}, want: `t of a text","password":"⟨S3CR⟩`},
		{name: "a field's object in a piece of a body", from: "< body", extra: []string{"card"}, want: `","card":{"no":"⟨4711⟩","cvc":"⟨12⟩`, in: `","card":{"no":"4711","cvc":"12`},
		{name: "a pointer", from: "< text", extra: []string{"/event/delta"},
			want: `42["run:event",{"event":{"delta":"⟨S3CR3T⟩","x":{"delta":"y"}}},{"event":{"delta":"z"}},"Q8lKFHF"]`},
		{name: "a pointer into an answer", from: "< text", extra: []string{"/messages/*/content"},
			want: `43/a,7[{"ok":true,"messages":[{"id":"1","content":"⟨a⟩"},{"id":"2","content":["⟨b⟩"]}]}]`},
		{name: "a pointer into a plain message", from: "> text", extra: []string{"/a~1b/~0"}, want: `{"event":"e","data":{"a/b":{"~":"⟨x⟩"}}}`},
		{name: "redacted before", from: "> text", want: `40{"token":"redacted-0123abcd-6"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := testRedactor(t, c.extra...)
			in := c.in
			if in == "" {
				in = marked.ReplaceAllString(c.want, "$1")
			}
			f := messageFrame(c.from, in)
			out := r.frame(f)
			want := withTokens(r, c.want)
			if string(out.Data) != want {
				t.Errorf("got  %s\nwant %s", out.Data, want)
			}
			if out.Size != int64(len(in)) || out.Flags.Has(capture.Redacted) != (want != in) || (out == f) != (want == in) {
				t.Errorf("size %d of %d, flags %v, the same frame %t", out.Size, len(in), out.Flags.Names(), out == f)
			}
			if string(f.Data) != in {
				t.Errorf("the frame's own data became %s", f.Data)
			}
		})
	}
}

func messageFrame(from, data string) *capture.Frame {
	way, kind, _ := strings.Cut(from, " ")
	f := &capture.Frame{Direction: capture.FromClient, Data: []byte(data), Size: int64(len(data))}
	if way == "<" {
		f.Direction = capture.FromGateway
	}
	f.Kind = map[string]capture.Kind{"text": capture.Text, "poll": capture.Polling, "body": capture.Body, "binary": capture.Binary}[kind]
	return f
}

// TestRedactHeaders: the same brackets, in the values of header fields.
func TestRedactHeaders(t *testing.T) {
	r := testRedactor(t, "X-Tenant", "tenant")
	for _, c := range []struct{ name, want string }{
		{"Authorization", "Bearer ⟨S3CR3T⟩"},
		{"Authorization", "⟨S3CR3T⟩"},
		{"Proxy-Authorization", "Basic ⟨Ym9iOng=⟩"},
		{"Cookie", "a=⟨1⟩; session=⟨S3CR3T⟩;b=⟨2⟩; ⟨bare⟩"},
		{"Set-Cookie", "io=⟨S3CR3T⟩; Path=/; HttpOnly; SameSite=Lax; Expires=Thu, 01 Jan 2026 00:00:00 GMT"},
		{"Set-Cookie", "gone=; Max-Age=0"},
		{"Sec-Websocket-Protocol", "a.v1,b.v2"},
		{"Sec-Websocket-Protocol", "graphql-transport-ws, v12.stomp, vite-hmr, mqttv3.1, base64.binary.k8s.io, ocpp2.0.1, wamp.2.json, MBWS.huawei.com"},
		{"Sec-Websocket-Protocol", "chat, ⟨eyJhbGciOiJIUzI1NiJ9.e30.c2ln⟩"},
		{"Sec-Websocket-Protocol", "access_token, ⟨hunter⟩"},
		{"Sec-Websocket-Protocol", "⟨S3CR3T-x⟩, ⟨p%40ss⟩"},
		{"X-Api-Key", "⟨S3CR3T⟩"},
		{"X-Amz-Security-Token", "⟨S3CR3T⟩"},
		{"X-Tenant", "⟨acme⟩"},
		{"Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="},
		{"Referer", "http://localhost:5173/chat?x=1&access_token=⟨S3CR3T⟩#top"},
		{"Referer", "https://⟨bob:hunter⟩@host/path@x"},
		{"Location", "/done#id_token=⟨S3CR3T⟩&state=1"},
		{"Link", "</next?page=2&tenant=⟨acme⟩>; rel=next"},
		{"User-Agent", "Mozilla/5.0 (X11; Linux x86_64)"},
	} {
		in := marked.ReplaceAllString(c.want, "$1")
		head := capture.RequestHead{Target: "/", Header: http.Header{c.name: {in, in}}}
		var got capture.RequestHead
		redactHead(t, r, capture.Request, head, &got)
		for _, value := range got.Header[c.name] {
			if want := withTokens(r, c.want); value != want {
				t.Errorf("%s\ngot  %s\nwant %s", c.name, value, want)
			}
		}
		answer := capture.ResponseHead{Header: http.Header{}, Adapted: http.Header{c.name: {in}}}
		var gotAnswer capture.ResponseHead
		redactHead(t, r, capture.Response, answer, &gotAnswer)
		if want := withTokens(r, c.want); gotAnswer.Adapted[c.name][0] != want {
			t.Errorf("adapted %s\ngot  %s\nwant %s", c.name, gotAnswer.Adapted[c.name][0], want)
		}
	}
}

// redactHead redacts a detail and reads the result.
func redactHead(t *testing.T, r *redactor, kind capture.Kind, in, out any) *capture.Frame {
	t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	f := r.frame(&capture.Frame{Kind: kind, Data: data, Size: int64(len(data))})
	if err := json.Unmarshal(f.Data, out); err != nil {
		t.Fatalf("%s: %v", f.Data, err)
	}
	return f
}

func TestRedactTargets(t *testing.T) {
	r := testRedactor(t)
	for _, want := range []string{
		"/socket.io/?EIO=4&transport=polling&t=22w8yqvb&sid=dofDU8VDA9PndFRoAAAA",
		"/x?token=⟨S3CR3T⟩&a=1",
		"/x?a=1&API-Key=⟨S3CR3T⟩",
		"/x?a=%26token=1&jwt=⟨a.b.c⟩",
		"/x?to%6ben=⟨S3CR3T⟩",
		"/x?max_tokens=5&page_token=abc&sort_key=name&keyword=x",
		"/x?token=",
		"/x?token",
		"/x?;password=⟨a;b⟩",
		"https://⟨u:p⟩@gateway/x?X-Amz-Signature=⟨S3CR3T⟩",
	} {
		in := marked.ReplaceAllString(want, "$1")
		want = withTokens(r, want)
		var open capture.Opening
		redactHead(t, r, capture.Open, capture.Opening{Target: in, Protocol: "chat"}, &open)
		var request capture.RequestHead
		redactHead(t, r, capture.Request, capture.RequestHead{Target: in}, &request)
		var done capture.Outcome
		redactHead(t, r, capture.Done, capture.Outcome{
			Error:   `dial "http://gateway` + in + `": refused`,
			Trailer: http.Header{"X-Token": {in}}, RequestTrailer: http.Header{"X-Token": {in}},
		}, &done)
		if done.Trailer.Get("X-Token") != r.token([]byte(in)) || done.RequestTrailer.Get("X-Token") != r.token([]byte(in)) {
			t.Errorf("trailers: %v, %v", done.Trailer, done.RequestTrailer)
		}
		if open.Target != want || request.Target != want {
			t.Errorf("got  %s\nand  %s\nwant %s", open.Target, request.Target, want)
		}
		if strings.HasPrefix(in, "/") && done.Error != `dial "http://gateway`+want+`": refused` {
			t.Errorf("got  %s\nwant %s", done.Error, want)
		}
	}
	// The same secret has the same token, however it was written.
	got := map[string]bool{}
	for _, target := range []string{"/?token=a%20b-%C3%A9", "/?key=a b-é"} {
		var open capture.Opening
		redactHead(t, r, capture.Open, capture.Opening{Target: target}, &open)
		got[open.Target[strings.IndexByte(open.Target, '=')+1:]] = true
	}
	if len(got) != 1 {
		t.Errorf("one secret, %d tokens: %v", len(got), got)
	}
	var open capture.Opening
	redactHead(t, r, capture.Open, capture.Opening{Target: "/", Protocol: "eyJhbGciOiJIUzI1NiJ9.e30.c2ln"}, &open)
	if open.Protocol != r.token([]byte("eyJhbGciOiJIUzI1NiJ9.e30.c2ln")) {
		t.Errorf("the subprotocol is %q", open.Protocol)
	}
}

// TestRedactCompressed: a compressed body that holds a secret is written as what
// it inflates to, also when it broke off.
func TestRedactCompressed(t *testing.T) {
	r := testRedactor(t)
	secret := "40{\"token\":\"S3CR3T\"}\x1e2"
	want := withTokens(r, "40{\"token\":\"⟨S3CR3T⟩\"}\x1e2")
	for _, flag := range []capture.Flags{capture.Gzip, capture.Deflate} {
		f := &capture.Frame{Kind: capture.Polling, Direction: capture.FromClient, Flags: flag, Data: packed(flag, secret), Size: 99}
		out := r.frame(f)
		if string(out.Data) != want || out.Flags != capture.Redacted || out.Size != 99 {
			t.Errorf("%v: got %q, %v", flag.Names(), out.Data, out.Flags.Names())
		}
		f.Data = packed(flag, "42[\"e\"]")
		if out := r.frame(f); out != f {
			t.Errorf("%v: a body without a secret became %q", flag.Names(), out.Data)
		}
		whole := packed(flag, "40{\"token\":\"S3CR3T\"}\x1e"+strings.Repeat("filler ", 5000))
		f.Data, f.Flags = whole[:len(whole)-6], flag|capture.Partial
		if out := r.frame(f); !strings.HasPrefix(string(out.Data), want[:20]) || out.Flags != capture.Redacted|capture.Partial {
			t.Errorf("%v: a body that broke off became %.40q, %v", flag.Names(), out.Data, out.Flags.Names())
		}
	}
	f := &capture.Frame{Kind: capture.Polling, Direction: capture.FromClient, Flags: capture.Gzip, Data: []byte("no gzip")}
	if out := r.frame(f); out != f {
		t.Errorf("a body that is no gzip became %q", out.Data)
	}
}

func packed(flag capture.Flags, text string) []byte {
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	if flag == capture.Deflate {
		w = zlib.NewWriter(&out)
	}
	io.WriteString(w, text)
	w.Close()
	return out.Bytes()
}

// TestRedactMsgpack: the CONNECT of socket.io's msgpack parser.
func TestRedactMsgpack(t *testing.T) {
	r := testRedactor(t)
	unhex := func(s string) []byte {
		b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	auth := unhex("81 a1 61 a6 533343523354") // {a: "S3CR3T"}
	packet := func(data []byte) []byte {
		return bytes.Join([][]byte{unhex("83 a4 74797065 00 a4 64617461"), data, unhex("a3 6e7370 a1 2f")}, nil)
	}
	in := packet(auth)
	token := r.token(auth)
	want := packet(append([]byte{0xd9, byte(len(token))}, token...))
	f := messageFrame("> binary", string(in))
	if out := r.frame(f); !bytes.Equal(out.Data, want) || !out.Flags.Has(capture.Redacted) {
		t.Errorf("got  %x\nwant %x", out.Data, want)
	}
	f = messageFrame("> poll", "b"+base64.StdEncoding.EncodeToString(in))
	if out := r.frame(f); string(out.Data) != "b"+base64.StdEncoding.EncodeToString(want) {
		t.Errorf("in base64: got %s", out.Data)
	}
	for length := 18; length < len(in); length++ { // broken off inside the secret, or after it
		out := r.frame(messageFrame("> binary", string(in[:length])))
		if bytes.Contains(out.Data, []byte("S3C")) {
			t.Errorf("%d of %d bytes became %q", length, len(in), out.Data)
		}
	}
	event := unhex("83 a4 74797065 02 a4 64617461 91 a6 533343523354 a3 6e7370 a1 2f")
	if f := messageFrame("> binary", string(event)); r.frame(f) != f {
		t.Error("an event was redacted")
	}
}

// TestRedactPlanted is B12: a secret in every place that is redacted without
// being asked, and none of its forms is left.
func TestRedactPlanted(t *testing.T) {
	const secret = "S3CR3T-é"
	quoted, _ := json.Marshal(secret)
	escaped := strings.ReplaceAll(string(quoted), "é", `\u00e9`)
	encoded := base64.StdEncoding.EncodeToString([]byte("bob:" + secret))
	head, _ := json.Marshal(capture.RequestHead{Target: "/x?token=" + url.QueryEscape(secret), Header: http.Header{
		"Authorization": {"Bearer " + secret}, "Proxy-Authorization": {"Basic " + encoded}, "Cookie": {"a=" + secret}, "X-Api-Key": {secret},
		"Sec-Websocket-Protocol": {"chat, " + url.QueryEscape(secret), "chat, " + secret}, "Referer": {"http://x/?key=" + secret},
	}})
	answer, _ := json.Marshal(capture.ResponseHead{Header: http.Header{"Set-Cookie": {"a=" + secret + "; Path=/"}, "Location": {"/?jwt=" + url.PathEscape(secret)}}})
	frames := []*capture.Frame{
		{Kind: capture.Request, Data: head},
		{Kind: capture.Response, Data: answer},
		messageFrame("> text", `40{"token":`+string(quoted)+`}`),
		messageFrame("> text", `40{"token":`+escaped+`}`),
		messageFrame("> poll", `40/a,{"token":`+escaped+`}`),
		messageFrame("> text", `{"event":"auth","data":{"token":`+escaped+`}}`),
		{Kind: capture.Polling, Direction: capture.FromClient, Flags: capture.Gzip, Data: packed(capture.Gzip, `40{"token":`+escaped+`}`)},
	}
	r := testRedactor(t)
	for _, f := range frames {
		out := r.frame(f)
		for _, form := range []string{"S3CR3T", encoded, base64.StdEncoding.EncodeToString([]byte(secret)), url.QueryEscape(secret), `\u00e9`} {
			if bytes.Contains(out.Data, []byte(form)) {
				t.Errorf("%q is left in %s", form, out.Data)
			}
		}
	}
	keep, err := newRedactor(testKey, []string{"token"}, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range frames {
		if keep.frame(f) != f {
			t.Error("--keep-secrets redacts")
		}
	}
}

// TestMsgpackEnd steps over one value of each form.
func TestMsgpackEnd(t *testing.T) {
	for _, form := range []string{
		"00", "7f", "ff", "c0", "c2", "c3", // small integers, nil, false, true
		"80", "82 a1 61 01 a1 62 90", "92 c0 91 c0", "a0", "a3 616263",
		"c4 01 00", "c5 0001 00", "c6 00000001 00", "c7 01 05 00", "c8 0001 05 00", "c9 00000001 05 00",
		"ca 00000000", "cb 0000000000000000", "cc 00", "cd 0000", "ce 00000000", "cf 0000000000000000",
		"d0 00", "d1 0000", "d2 00000000", "d3 0000000000000000", "d4 05 00", "d5 05 0000", "d6 05 00000000",
		"d7 05 0000000000000000", "d8 05 00000000000000000000000000000000",
		"d9 01 61", "da 0001 61", "db 00000001 61", "dc 0002 c0 c0", "dd 00000001 c0", "de 0001 a1 61 c0", "df 00000001 a1 61 c0",
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(form, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if end := msgpackEnd(append(b, 0xc0), 0, 1); end != len(b) {
			t.Errorf("%s ends at %d, want %d", form, end, len(b))
		}
		for length := range b {
			if end := msgpackEnd(b[:length], 0, 1); end != -1 {
				t.Errorf("%d bytes of %s end at %d", length, form, end)
			}
		}
	}
	for _, form := range []string{"c1", "dbffffffff", "dfffffffff", "ddffffffff"} {
		b, _ := hex.DecodeString(form)
		if end := msgpackEnd(b, 0, 1); end != -1 {
			t.Errorf("%s ends at %d", form, end)
		}
	}
}

func TestRedactNames(t *testing.T) {
	for _, name := range []string{"", "two words", `a"b`, "/a/~2", "/~", "tab\t"} {
		if _, err := newRedactor(testKey, []string{name}, false); err == nil {
			t.Errorf("%q was taken", name)
		}
	}
	other, err := newRedactor([]byte("another tape's key"), nil, false)
	if err != nil {
		t.Fatal(err)
	}
	a, b := testRedactor(t).token([]byte("x")), other.token([]byte("x"))
	if a == b || !tokenForm.MatchString(a) || url.QueryEscape(a) != a {
		t.Errorf("tokens %q and %q", a, b)
	}
}

// TestRedactSteadyState: an ordinary event costs no allocation.
func TestRedactSteadyState(t *testing.T) {
	r := testRedactor(t)
	for _, from := range []string{"< text", "> text", "< poll", "> poll"} {
		f := messageFrame(from, `42["run:event",{"v":1,"event":{"type":"TEXT_MESSAGE_CONTENT","delta":"words"}}]`)
		if n := testing.AllocsPerRun(100, func() { r.frame(f) }); n != 0 {
			t.Errorf("%s: %v allocations", from, n)
		}
	}
}
