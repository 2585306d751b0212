// Package recorder keeps the tape: one bbolt file with every frame that passed,
// in order, and what was derived from them. Only this package knows bbolt.
//
// # Promises
//
// What a client saw recorded stays recorded: frames are committed in groups, 15
// ms or 1,000 frames or 1 MiB at most after they came, and a process that is
// killed loses at most that window, never the file. Raw bytes are kept exactly,
// save for secrets, which are replaced before anything touches the disk. A
// session says that it is clean only if it ended in order and lost nothing. A
// file that is no tape, or a newer or damaged one, is refused before a byte of
// it is changed.
//
// # Layout, format 2
//
// Numbers in keys are big-endian, so that keys sort as their numbers do. A
// "name" is the first 16 bytes of the SHA-256 of a run's or thread's id, since
// an id is the gateway's and may be of any length.
//
//	bucket       key                                          payload
//	meta         "format"                                     the format's number, in decimal
//	             "tool"                                       the tapedeck that made the tape
//	             "secret"                                     32 random bytes, the key of redaction
//	sessions     session (4)                                  JSON of capture.Session
//	connections  position of the Open frame (8)               session (varint), that frame's record
//	frames       position of the block's first frame (8)      a block
//	blobs        SHA-256 of the bytes (32)                    length (varint), the bytes, packed
//	runs         session (4), name (16)                       JSON of conversation.Run
//	threads      session (4), name (16)                       JSON of conversation.Thread
//	posts        session (4), name of the run (16),           up to 512 positions: the first as a varint,
//	             number of the list's first post (4)          the others as zigzag varints of the differences
//	findings     session (4), position (8), packet (4), n (4) JSON of protocol.Finding
//
// Every value is four bytes of CRC-32C, little-endian, over the bucket's name,
// the key and the payload, and then the payload. So a value that was damaged, or
// that stands in the wrong place, is known for what it is, and [Repair] can tell
// a tape's values from other bytes without the tree that led to them.
//
// A block is the number of its session, the number of its frames and the length
// of their records (varints), and the records, packed. It closes at 128 KiB of
// records, and with its session; until then it is written again under its key at
// each commit. Positions are dense within a block, so a record holds none:
//
//	time      zigzag varint   since the record before it, in nanoseconds
//	kind      1 byte
//	flags     varint          shifted left by two, and the direction
//	of        2 varints       the connection, the exchange
//	size      zigzag varint   how much longer it passed than it is here
//	data      varint, bytes   its length shifted left by one, then the bytes; or
//	                          the length shifted and one more, then a blob's key
//
// Data over 64 KiB is kept in blobs, once however often it passed.
//
// Packed bytes are in s2, or in zstd, which is known by its first four bytes:
// blocks that came slowly are, at their end. Format 1 had zstd alone; a tape of it
// is read, and recorded on, as it stands.
//
// Sessions, connections, frames and blobs are what was recorded. The rest is
// derived from it (see [Index]), reaches as far as the session's Judged says,
// and can be dropped and made again (see [OpenIndexer]).
//
// # What it does not do
//
// It decodes no message and judges none. It holds no read transaction open
// between two calls, nor while a frame is yielded: one that stays open makes the
// file grow without end, and keeps the file locked. One process writes a tape at
// a time, and nobody else can read the file then; package live reads it through
// the one that writes.
package recorder
