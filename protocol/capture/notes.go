package capture

// Notes are what a capsule says of a session beside what passed. A session that
// was imported from one keeps them, and so they travel on with it.
type Notes struct {
	Title   string `json:"title,omitempty"`
	Comment string `json:"comment,omitempty"`
	Marks   []Mark `json:"marks,omitempty"`
	// Source is the session's source before it became a capsule.
	Source string `json:"source,omitempty"`
	// Redacted names what was taken out, as it was asked for; none if nothing
	// was.
	Redacted []string `json:"redacted,omitempty"`
	// Catalogue is the version of the rules that it was judged by.
	Catalogue int `json:"catalogue,omitempty"`
	// Runs are the ids of those it was made for, none if it was made of the
	// whole session.
	Runs []string `json:"runs,omitempty"`
}

// Mark is a place that somebody wants another to look at.
type Mark struct {
	At   Address `json:"at"`
	Text string  `json:"text,omitempty"`
}
