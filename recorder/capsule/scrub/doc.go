// Package scrub takes content out of frames, so that a capsule can be handed on,
// and proves that secrets are gone.
//
// What is taken out is asked for by what it is: text, reasoning, input, tool-args,
// tool-results, decisions, todos, attachments, errors, http, other, or all of
// them; by a member's name, field:password; by a JSON pointer into the payload of
// a message, /event/payload/card; or by what it says, pattern:\d{16}. Credentials
// go whatever was asked for, as a Writer takes them out.
//
// A value is replaced unit by unit, as JavaScript counts: letters by letters,
// digits by digits. So lengths stay, and the borders of deltas, the shape of
// JSON, spaces and punctuation, half surrogate pairs, numbers that are numbers.
// What comes in the place of a value depends on a key and on the value alone: the
// same secret becomes the same wherever it stands, in one piece or cut over
// deltas, delivered once or to three windows, told again by a history. Values
// that begin alike become alike at their beginning; that is what it gives away.
//
// Names, ids, types and numbers of the protocol stay. What cannot be read is
// replaced as a whole where anything is. Of a compressed HTTP body, which cannot
// be looked through in pieces, nothing is left.
package scrub
