package driver

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options say whom to drive against, and how. URL is required.
type Options struct {
	// URL is the gateway's address, http or https, without the path, which is
	// the recorded one. What it has in its query is sent with each handshake.
	URL string
	// Auth is the JSON object sent with CONNECT, nil for none: what was sent
	// when the tape was recorded is a secret that the tape does not have.
	Auth json.RawMessage
	// Header is sent with each handshake.
	Header http.Header
	// Dial opens the connections, in place of the network. Nil is the network.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Speed divides the time that the client thought, 1 if it is 0.
	Speed float64
	// MaxThink is the longest that it thinks, MaxThinkDefault if it is 0.
	// Below 0 it does not think at all.
	MaxThink time.Duration
	// Patience is how long nothing may come of what a message waits for,
	// PatienceDefault if it is 0.
	Patience time.Duration
	// Limit is how long all of it may take, LimitDefault if it is 0.
	Limit time.Duration
	// KeepIDs sends the client's ids of threads and messages as recorded. A
	// gateway that has seen them refuses them. Otherwise each gets Suffix.
	KeepIDs bool
	// Threads are threads that the gateway has, by the recorded ones that they
	// stand for: where a thread must be made before it is spoken of.
	Threads map[string]string
	// Suffix makes ids that the gateway has not seen; a random one if it is "".
	Suffix string
	// Step, if it is not nil, is told of each message as it is sent or left
	// out, one call at a time. It must not wait for the drive.
	Step func(Step)
}

// The defaults of Options.
const (
	MaxThinkDefault = 2 * time.Second
	PatienceDefault = 30 * time.Second
	LimitDefault    = 30 * time.Minute
)

// Validate returns what is wrong with o, naming the field.
func (o Options) Validate() error {
	var errs []error
	if u, err := url.Parse(o.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		errs = append(errs, fmt.Errorf("url %q is no address such as http://localhost:3000", o.URL))
	}
	var object map[string]json.RawMessage
	if o.Auth != nil && (json.Unmarshal(o.Auth, &object) != nil || object == nil) {
		errs = append(errs, errors.New("auth is no JSON object")) // it is a secret, and not shown
	}
	if o.Speed < 0 || math.IsNaN(o.Speed) {
		errs = append(errs, fmt.Errorf("speed %v is below 0", o.Speed))
	}
	if o.Patience < 0 {
		errs = append(errs, fmt.Errorf("patience %v is below 0", o.Patience))
	}
	if o.Limit < 0 {
		errs = append(errs, fmt.Errorf("limit %v is below 0", o.Limit))
	}
	return errors.Join(errs...)
}

func (o Options) withDefaults() Options {
	o.Speed = cmp.Or(o.Speed, 1)
	o.MaxThink = cmp.Or(o.MaxThink, MaxThinkDefault)
	o.Patience = cmp.Or(o.Patience, PatienceDefault)
	o.Limit = cmp.Or(o.Limit, LimitDefault)
	o.Suffix = cmp.Or(o.Suffix, strings.ToLower(rand.Text()[:8]))
	if o.Step == nil {
		o.Step = func(Step) {}
	}
	return o
}

// drive is one performance of a recording.
type drive struct {
	*Recording
	Options
	fresh fresh

	telling sync.Mutex // held while Step is called
}

// Drive does what the recorded client did, against a live gateway. It returns
// an error if the gateway lets no window in though the recorded one did, or if
// ctx is cancelled; that it behaves otherwise than the recorded one is in the
// Result, which is returned with an error too.
func (r *Recording) Drive(ctx context.Context, o Options) (*Result, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("configure drive: %w", err)
	}
	o = o.withDefaults()
	d := &drive{Recording: r, Options: o, fresh: newFresh(o)}
	bounded, cancel := context.WithTimeout(ctx, o.Limit)
	defer cancel()

	players := make([]*player, len(r.parties))
	var playing sync.WaitGroup
	turn := make(chan struct{}) // closed when a party's first window has connected
	close(turn)
	for i, p := range r.parties {
		players[i] = newPlayer(d, p)
		mine := turn
		turn = players[i].begun
		playing.Go(func() { players[i].play(bounded, mine) })
	}
	playing.Wait()

	result := &Result{Suffix: o.Suffix}
	var shut error
	accepted := false
	for _, p := range players {
		accepted = accepted || p.accepted
		shut = cmp.Or(shut, p.shut)
		p.report(result)
	}
	switch {
	case ctx.Err() != nil:
		return result, fmt.Errorf("drive: %w", ctx.Err())
	case !accepted && shut != nil:
		return result, fmt.Errorf("drive: %w", shut)
	}
	return result, nil
}

// thinking is how long a client thinks that thought so long.
func (d *drive) thinking(recorded time.Duration) time.Duration {
	return max(0, min(time.Duration(float64(recorded)/d.Speed), d.MaxThink))
}

func (d *drive) told(s Step) {
	d.telling.Lock()
	defer d.telling.Unlock()
	d.Step(s)
}

// transportQuery are the parameters of a handshake that belong to the
// connection.
var transportQuery = []string{"EIO", "transport", "sid", "t", "b64", "j"}

// handshake splits the target of a recorded handshake into its path, the
// parameters to send again, and the names of those that were redacted.
func handshake(target string) (path string, query url.Values, redacted []string) {
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return "", url.Values{}, nil
	}
	query = u.Query()
	if query.Has("EIO") {
		for _, name := range transportQuery {
			query.Del(name)
		}
	}
	for name, values := range query {
		if slices.ContainsFunc(values, func(v string) bool { return strings.HasPrefix(v, "redacted-") }) {
			redacted = append(redacted, name)
			query.Del(name)
		}
	}
	slices.Sort(redacted)
	return u.EscapedPath(), query, redacted
}

// address is where a window connects to.
func (d *drive) address(w *window) (string, error) {
	u, err := url.Parse(d.URL)
	if err != nil {
		return "", fmt.Errorf("read address: %w", err)
	}
	path, query, _ := handshake(w.target)
	if path != "" {
		u = u.JoinPath(path)
	}
	maps.Copy(query, u.Query())
	u.RawQuery = query.Encode()
	return u.String(), nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
