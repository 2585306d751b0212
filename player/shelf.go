package player

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// Bounds of what may be put in over HTTP.
const (
	maxBody  = 8 << 20 // bytes of one thing
	maxShelf = 1000    // things in a collection
)

// collections are the parts of the HTTP surface that take what is put in and
// give it back.
func collections() []string { return []string{"conversations", "agents", "attachments"} }

// shelves keep what was put in.
type shelves struct {
	mu    sync.Mutex // protects following
	items map[string][]*item
	made  int
}

// item is one thing in a collection: JSON, or bytes of another media type.
type item struct {
	id, mediaType string
	body          []byte
}

func newShelves() *shelves {
	s := &shelves{}
	s.clear()
	return s
}

// clear empties the shelves but for the agent that every run is by.
func (s *shelves) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = map[string][]*item{"agents": {{"tapedeck", "application/json", []byte(`{"id":"tapedeck","name":"tapedeck","description":"Answers with synthetic runs."}`)}}}
	s.made = 0
}

func (s *shelves) find(shelf, id string) *item {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.items[shelf] {
		if i.id == id {
			return i
		}
	}
	return nil
}

func (s *shelves) has(shelf, id string) bool { return s.find(shelf, id) != nil }

func (s *shelves) remove(shelf, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[shelf] = slices.DeleteFunc(slices.Clone(s.items[shelf]), func(i *item) bool { return i.id == id })
}

// put adds an item, or replaces the one of its id.
func (s *shelves) put(shelf string, i *item) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, there := range s.items[shelf] {
		if there.id == i.id {
			s.items[shelf][at] = i
			return nil
		}
	}
	if len(s.items[shelf]) >= maxShelf {
		return fmt.Errorf("%s has %d entries, and no room for more: delete some, or reset the player", shelf, maxShelf)
	}
	s.items[shelf] = append(s.items[shelf], i)
	return nil
}

func (s *shelves) next() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.made++
	return s.made
}

// list writes a collection as {"NAME": [...]}: what was put in, and then what
// there is besides.
func (s *shelves) list(shelf string, besides []*item) json.RawMessage {
	s.mu.Lock()
	all := slices.Clone(s.items[shelf])
	s.mu.Unlock()
	for _, i := range besides {
		if !slices.ContainsFunc(all, func(o *item) bool { return o.id == i.id }) {
			all = append(all, i)
		}
	}
	o := append(object{}.key(shelf), '[')
	for n, i := range all {
		if n > 0 {
			o = append(o, ',')
		}
		o = append(o, i.describe(shelf)...)
	}
	return append(o, ']').close()
}

// spoken are the threads that hold messages, as entries of /conversations, by
// their ids. They are nowhere else.
func (g *Gateway) spoken(shelf string) (items []*item) {
	if shelf != "conversations" {
		return nil
	}
	g.mu.Lock()
	threads := slices.SortedFunc(maps.Values(g.threads), func(a, b *thread) int { return strings.Compare(a.id, b.id) })
	g.mu.Unlock()
	for _, t := range threads {
		t.lock()
		body := t.conversation()
		t.unlock()
		if body != nil {
			items = append(items, &item{id: t.id, mediaType: "application/json", body: body})
		}
	}
	return items
}

// conversation describes a thread by its first message, nil if nothing was said
// yet. The caller holds its lock.
func (t *thread) conversation() json.RawMessage {
	first := Message{}
	switch {
	case len(t.past.messages) > 0:
		first = *t.past.messages[0]
	case t.run != nil && t.run.chain != nil && t.run.chain.message.ID != "":
		first = t.run.chain.message
	default:
		return nil
	}
	var told struct {
		Content   json.RawMessage `json:"content"`
		CreatedAt json.RawMessage `json:"createdAt"`
	}
	// What is no such message has no title.
	_ = json.Unmarshal(first.render(), &told)
	return object{}.text("id", t.id).some("title", told.Content).some("createdAt", told.CreatedAt).close()
}

// item returns one thing of a collection, nil if it is not there.
func (g *Gateway) item(shelf, id string) *item {
	if found := g.shelves.find(shelf, id); found != nil {
		return found
	}
	spoken := g.spoken(shelf)
	if at := slices.IndexFunc(spoken, func(i *item) bool { return i.id == id }); at >= 0 {
		return spoken[at]
	}
	return nil
}

// describe is an item as JSON: itself, or what is known of its bytes.
func (i *item) describe(shelf string) json.RawMessage {
	if i.mediaType == "application/json" {
		return i.body
	}
	return object{}.text("id", i.id).text("mediaType", i.mediaType).raw("size", number(len(i.body))).
		text("url", "/"+shelf+"/"+i.id).close()
}

// serveShelf lists a collection and adds to it.
func (g *Gateway) serveShelf(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet, http.MethodHead:
			writeJSON(w, http.StatusOK, g.shelves.list(name, g.spoken(name)))
		case http.MethodPost:
			g.putItem(w, r, name, "", http.StatusCreated)
		default:
			problem(w, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "/%s takes GET and POST, not %s", name, r.Method)
		}
	}
}

// serveItem reads, replaces and deletes one thing of a collection.
func (g *Gateway) serveItem(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		id := r.PathValue("id")
		found := g.item(name, id)
		switch r.Method {
		case http.MethodPut, http.MethodPatch:
			g.putItem(w, r, name, id, http.StatusOK)
			return
		case http.MethodGet, http.MethodHead, http.MethodDelete:
		default:
			problem(w, http.StatusMethodNotAllowed, "METHOD_NOT_ALLOWED", "/%s/%s takes GET, PUT, PATCH and DELETE, not %s", name, id, r.Method)
			return
		}
		if found == nil {
			problem(w, http.StatusNotFound, "NOT_FOUND", "there is nothing at /%s/%s: put it in by POST /%s", name, id, name)
			return
		}
		if r.Method == http.MethodDelete {
			g.shelves.remove(name, id)
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", found.mediaType)
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Security-Policy", "sandbox")
		// A client that is gone needs no answer.
		_, _ = w.Write(found.body)
	}
}

// putItem keeps the body of a request.
func (g *Gateway) putItem(w http.ResponseWriter, r *http.Request, shelf, id string, status int) {
	made, err := readItem(w, r)
	if err != nil {
		problem(w, http.StatusBadRequest, "INVALID_BODY", "%v", err)
		return
	}
	if made.id = id; id == "" {
		var named struct {
			ID string `json:"id"`
		}
		// A body without an id, or one that is no object, gets an id.
		_ = json.Unmarshal(made.body, &named)
		if made.id = named.ID; made.id == "" {
			made.id = g.ident(strings.TrimSuffix(shelf, "s"), g.shelves.next())
			if made.mediaType == "application/json" {
				made.body = withID(made.body, made.id)
			}
		}
	}
	if err := g.shelves.put(shelf, made); err != nil {
		problem(w, http.StatusInsufficientStorage, "FULL", "%v", err)
		return
	}
	writeJSON(w, status, made.describe(shelf))
}

// withID puts an id in front of an object's members.
func withID(body []byte, id string) []byte {
	o := object{}.text("id", id)
	inner := strings.TrimSpace(string(body))
	if len(inner) < 2 || inner[0] != '{' {
		return o.raw("value", body).close()
	}
	if rest := strings.TrimSpace(inner[1:]); rest != "}" {
		o = append(o, ',')
		return append(o, rest...)
	}
	return o.close()
}

// readItem reads a body: JSON, the first file of a form, or bytes as they are.
func readItem(w http.ResponseWriter, r *http.Request) (*item, error) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		mediaType = "application/json"
	}
	source := io.Reader(r.Body)
	if mediaType == "multipart/form-data" {
		form, err := r.MultipartReader()
		if err != nil {
			return nil, fmt.Errorf("read form: %w", err)
		}
		for {
			part, err := form.NextPart()
			if err != nil {
				return nil, fmt.Errorf("read form: there is no file in it: %w", err)
			}
			if part.FileName() != "" {
				source, mediaType = part, part.Header.Get("Content-Type")
				break
			}
		}
	}
	body, err := io.ReadAll(source)
	if err != nil {
		return nil, fmt.Errorf("read body (at most %d bytes): %w", maxBody, err)
	}
	if mediaType == "application/json" && !json.Valid(body) {
		return nil, fmt.Errorf("the body is no JSON: say in Content-Type what it is, such as image/png")
	}
	return &item{mediaType: mediaType, body: body}, nil
}
