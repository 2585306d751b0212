// Package recorder keeps the tape: one bbolt file with every frame that passed,
// in order, and what was derived from them. Only this package knows bbolt.
package recorder
