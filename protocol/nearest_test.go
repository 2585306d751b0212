package protocol

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"RUN_STARTED", "RUN_FINISHED", "threadId", "type", "upstream"}
	for _, c := range []struct{ given, want string }{
		{"RUN_STARTD", "RUN_STARTED"},
		{"RUN_STRATED", "RUN_STARTED"},
		{"threadid", "threadId"},
		{"tpye", "type"},
		{"upsteram", "upstream"},
		{"BILLING_SUMMARY", ""},
		{"RUN_FILTERED", ""}, // four letters from RUN_STARTED
		{"x", ""},
		{"", ""},
	} {
		if got := Nearest(c.given, known); got != c.want {
			t.Errorf("Nearest(%q) = %q, want %q", c.given, got, c.want)
		}
	}
}
