// Package inspector shows what is on a tape: lists of runs and threads, the
// timeline of a run, single packets, findings, and a session as it passes. It is
// a model without a terminal: text or JSON comes out.
//
// The way through it: a [Source] gives frames; a [Feed] turns them into moments,
// which are messages in their place; a [Filter] says which moments are wanted; a
// [Timeline] folds them into rows, one a construct; a [View] writes them. Rows
// are data that say themselves in pieces of text with a style, so whatever draws
// them, lines or a screen, says the same. A [Screen] is the terminal UI without
// its terminal.
//
// Runs are handed on as a page ([WriteHTML]), compared by their [Normal] form
// ([Compare], [CompareNormal]) and measured ([LoadStats]).
//
// What comes off the wire is hostile. Every string passes through [Clean]
// before it is shown: control characters, marks of direction and invisible
// characters come out as escapes, in every form. Numbers keep all their digits.
// Text is measured and cut by grapheme clusters, and a cut says how much it
// hides. Nothing is told by colour alone.
//
// It does not judge: findings come from the source, or from the state of
// package conversation that a Feed was given.
package inspector
