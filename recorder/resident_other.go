//go:build !linux

package recorder

// unmap does nothing where the kernel cannot be told.
func (t *tapeFile) unmap() {}
