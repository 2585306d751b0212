// Package tape is the player's source of recorded runs.
package tape
