// Package inspector shows what is on a tape: lists of runs and threads, the
// timeline of a run, single messages, and the filter language that all views
// share. It is a model without a terminal: text comes out, and what comes off
// the wire is shown and never obeyed.
package inspector
