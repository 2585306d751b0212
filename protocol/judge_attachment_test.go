package protocol

import (
	"encoding/base64"
	"strings"
	"testing"

	"tapedeck/protocol/capture"
)

// TestEmbeddedAttachments checks attachments whose bytes stand in the command.
func TestEmbeddedAttachments(t *testing.T) {
	whole := base64.StdEncoding.EncodeToString(make([]byte, AttachmentMaxBytes))
	over := base64.StdEncoding.EncodeToString(make([]byte, AttachmentMaxBytes+1))
	for _, c := range []struct{ name, attachment, want string }{
		{"5 MiB in base64", `{"mediaType":"image/png","data":"` + whole + `"}`, ""},
		{"a byte more", `{"mediaType":"image/png","data":"` + over + `"}`, "attachment-too-large /attachments/0/data"},
		{"a byte more, though size says less", `{"mediaType":"image/png","size":3,"data":"` + over + `"}`, "attachment-too-large /attachments/0/data"},
		{"without padding, in the other alphabet", `{"mediaType":"image/png","bytes":"` + strings.TrimRight(strings.ReplaceAll(over, "A", "_"), "=") + `"}`, "attachment-too-large /attachments/0/bytes"},
		{"a data URL", `{"preview":"data:image/png;base64,` + over + `"}`, "attachment-too-large /attachments/0/preview"},
		{"a data URL with a parameter", `{"url":"data:image/tiff;name=a.tif;base64,AAAA"}`, "attachment-media-type /attachments/0/url"},
		{"a data URL that is no base64", `{"url":"data:image/tiff,abc"}`, ""},
		{"a long name", `{"mediaType":"image/png","name":"` + over + `"}`, ""},
		{"a text that is no base64", `{"mediaType":"image/png","content":"` + strings.Repeat("a b ", AttachmentMaxBytes/2) + `"}`, ""},
		{"an attachment by its id", `"file-1"`, ""},
	} {
		m := Message{
			Name: RunStart, Direction: capture.FromClient,
			Payload: []byte(`{"threadId":"t","messageId":"m","input":"","attachments":[` + c.attachment + `]}`),
		}
		got := ""
		for _, f := range NewValidator(Options{}).Validate(&m, nil) {
			got += f.Rule + " " + f.Pointer
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
