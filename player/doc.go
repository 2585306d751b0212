// Package player stands in as a whole gateway: it keeps threads, runs and
// pending decisions, and serves synthetic or recorded runs to unmodified
// clients.
package player
