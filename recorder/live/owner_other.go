//go:build !unix

package live

import "io/fs"

// isMine is not asked here: sockets have no folder of their own.
func isMine(fs.FileInfo) bool { return true }
