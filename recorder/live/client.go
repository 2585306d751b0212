package live

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/recorder"
)

// answerTimeout is how long an answer may take to begin.
const answerTimeout = 10 * time.Second

// Client reads a tape through the process that writes it. Its methods are safe
// for concurrent use, and do what those of a recorder.Reader do.
type Client struct {
	http  http.Client
	base  string
	token string
}

// Dial asks for the tape at path the process that writes it. It returns an error
// within a second if there is none, or if it speaks another version.
func Dial(path string) (*Client, error) {
	c, err := dial(path)
	if err != nil {
		return nil, fmt.Errorf("read tape %q through the process that writes it: %w", path, err)
	}
	return c, nil
}

func dial(path string) (*Client, error) {
	name, err := socketName(path)
	if err != nil {
		return nil, err
	}
	network, address, c := "unix", name, &Client{base: "http://tape"}
	if !haveUnix() {
		p, err := readPlace(name)
		if err != nil {
			return nil, err
		}
		network, address, c = "tcp", p.Address, &Client{base: "http://" + p.Address, token: p.Token}
	}
	return c.connect(network, address)
}

func (c *Client) connect(network, address string) (*Client, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	c.http.Transport = &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, address)
		},
		ResponseHeaderTimeout: answerTimeout,
		DisableCompression:    true,
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	body, err := c.get(ctx, "version", nil)
	if err != nil {
		c.Close()
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("it does not answer within %v", dialTimeout)
		}
		return nil, err
	}
	return c, body.Close()
}

// Close ends the connections to the process.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// get asks for something and returns the body of an answer that is one.
func (c *Client) get(ctx context.Context, call string, values url.Values) (io.ReadCloser, error) {
	return c.send(ctx, http.MethodGet, call+"?"+values.Encode(), nil)
}

// send sends a request and returns the body of an answer that is one.
func (c *Client) send(ctx context.Context, method, call string, body io.Reader) (io.ReadCloser, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.base+"/v1/"+strings.TrimSuffix(call, "?"), body)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // the URL says nothing to anyone
		}
		return nil, err
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	reason, _ := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	answer.Body.Close()
	return nil, fmt.Errorf("it answered %d: %q", answer.StatusCode, strings.TrimSpace(string(reason)))
}

// items yields the items of an answer, and its errors. Only after a LostError
// may more come.
func items[T any](ctx context.Context, c *Client, call string, values url.Values) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		fail := func(err error) { yield(none, fmt.Errorf("read %s of the live tape: %w", call, err)) }
		body, err := c.get(ctx, call, values)
		if err != nil {
			fail(err)
			return
		}
		defer body.Close()
		in := json.NewDecoder(bufio.NewReaderSize(body, 64<<10))
		for {
			var l line[T]
			switch err := in.Decode(&l); {
			case errors.Is(err, io.EOF):
				fail(fmt.Errorf("the process that writes it ended: %w", io.ErrUnexpectedEOF))
				return
			case err != nil:
				fail(err)
				return
			case l.End:
				io.Copy(io.Discard, body) // so that the connection is used again
				return
			case l.Error != nil:
				fail(l.Error.error())
				return
			case l.Lost != nil:
				if !yield(none, &recorder.LostError{First: l.Lost.First, Last: l.Lost.Last, Reason: errors.New(l.Lost.Reason)}) {
					return
				}
			case l.Item != nil && !yield(*l.Item, nil):
				return
			}
		}
	}
}

func (f *fault) error() error {
	switch f.Kind {
	case "damaged":
		return &remoteError{f.Text, recorder.ErrDamaged}
	case "closed":
		return &remoteError{f.Text, recorder.ErrClosed}
	}
	return errors.New(f.Text)
}

// remoteError is an error of the process that writes the tape.
type remoteError struct {
	text string
	kind error
}

func (e *remoteError) Error() string { return e.text }
func (e *remoteError) Unwrap() error { return e.kind }

// collect gathers an answer. As with a Reader, a LostError may come with items.
func collect[T any](ctx context.Context, c *Client, call string, values url.Values) ([]T, error) {
	var all []T
	var lost error
	for item, err := range items[T](ctx, c, call, values) {
		if _, ok := errors.AsType[*recorder.LostError](err); ok {
			lost = err
		} else if err != nil {
			return nil, err
		} else {
			all = append(all, item)
		}
	}
	return all, lost
}

func runValues(run conversation.RunKey) url.Values {
	return url.Values{"session": {strconv.Itoa(int(run.Session))}, "run": {run.Run}}
}

// Sessions returns the sessions in order.
func (c *Client) Sessions(ctx context.Context) ([]capture.Session, error) {
	return collect[capture.Session](ctx, c, "sessions", nil)
}

// Runs returns the runs in order of their first frames.
func (c *Client) Runs(ctx context.Context) ([]conversation.Run, error) {
	return collect[conversation.Run](ctx, c, "runs", nil)
}

// Threads returns the threads in order of their first frames.
func (c *Client) Threads(ctx context.Context) ([]conversation.Thread, error) {
	return collect[conversation.Thread](ctx, c, "threads", nil)
}

// Rows returns frames posted to a run, as a recorder.Reader does.
func (c *Client) Rows(ctx context.Context, run conversation.RunKey, from, n int) ([]capture.Frame, error) {
	if from < 0 || n <= 0 {
		return nil, nil
	}
	values := runValues(run)
	values.Set("from", strconv.Itoa(from))
	values.Set("n", strconv.Itoa(n))
	return collect[capture.Frame](ctx, c, "rows", values)
}

// Frames returns frames from a position on, as a recorder.Reader does.
func (c *Client) Frames(ctx context.Context, from capture.Position, n int) ([]capture.Frame, error) {
	if n <= 0 {
		return nil, nil
	}
	values := url.Values{"from": {strconv.FormatUint(uint64(from), 10)}, "n": {strconv.Itoa(n)}}
	return collect[capture.Frame](ctx, c, "frames", values)
}

// Findings returns the findings of a run, or all if run is nil, in order.
func (c *Client) Findings(ctx context.Context, run *conversation.RunKey) ([]protocol.Finding, error) {
	var values url.Values
	if run != nil {
		values = runValues(*run)
	}
	return collect[protocol.Finding](ctx, c, "findings", values)
}

// SetMark marks a place of the tape, as recorder.SetMark does.
func (c *Client) SetMark(ctx context.Context, m capture.Mark) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("mark #%s: %w", m.At, err)
	}
	body, err := c.send(ctx, http.MethodPost, "mark", bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("mark #%s of the live tape: %w", m.At, err)
	}
	defer body.Close()
	var l line[struct{}]
	if err := json.NewDecoder(body).Decode(&l); err != nil {
		return fmt.Errorf("mark #%s of the live tape: the process that writes it ended: %w", m.At, io.ErrUnexpectedEOF)
	}
	if l.Error != nil {
		return l.Error.error()
	}
	return nil
}

// Follow yields frames from a position on, as a recorder.Reader does.
func (c *Client) Follow(ctx context.Context, from capture.Position) iter.Seq2[capture.Frame, error] {
	return func(yield func(capture.Frame, error) bool) {
		values := url.Values{"from": {strconv.FormatUint(uint64(from), 10)}}
		for f, err := range items[capture.Frame](ctx, c, "follow", values) {
			if err != nil && ctx.Err() != nil || !yield(f, err) {
				return
			}
		}
	}
}
