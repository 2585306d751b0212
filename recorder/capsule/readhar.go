package capsule

import (
	"context"
	"errors"
	"io"
)

func (m *importer) readHAR(context.Context, io.Reader) error { return errors.New("no HAR yet") }
