package protocol

import (
	"bytes"
	"slices"
	"strings"
)

// attachmentMediaTypes is ATTACHMENT_MEDIA_TYPES.
var attachmentMediaTypes = []string{"image/png", "image/jpeg", "image/webp", "image/gif"}

// attachments judges run:start's attachments. The page states their limits and
// not their fields: mediaType and size are read where they are, and where the
// bytes themselves stand in a string, those count.
func (j *judge) attachments(list []byte) {
	items, _ := readArray(list)
	if len(items) > MaxAttachmentsPerRun {
		j.report("attachments-too-many", "/attachments", "%d attachments: send at most %d a run", len(items), MaxAttachmentsPerRun)
	}
	for i, item := range items {
		if j.full() {
			break
		}
		at := "/attachments" + pointerAt(i)
		o, _ := readObject(item)
		mediaType, mediaAt := o.text("mediaType"), at+"/mediaType"
		size, sizeAt := int64(-1), at+"/size"
		if n, ok := integerOf(o.get("size")); ok {
			size = n
		}
		for _, m := range o {
			inURL, n, ok := embedded(m.name, m.value)
			if !ok {
				continue
			}
			if mediaType == "" {
				mediaType, mediaAt = inURL, at+pointerTo(m.name)
			}
			if n > AttachmentMaxBytes || size < 0 {
				size, sizeAt = n, at+pointerTo(m.name)
			}
		}
		if mediaType != "" && !slices.Contains(attachmentMediaTypes, mediaType) {
			j.report("attachment-media-type", mediaAt, "attachment %d is %s: send one of %s",
				i+1, quote(mediaType), strings.Join(attachmentMediaTypes, ", "))
		}
		if size > AttachmentMaxBytes {
			j.report("attachment-too-large", sizeAt, "attachment %d has %d B: send at most %d (5 MiB)", i+1, size, AttachmentMaxBytes)
		}
	}
}

// embedded reads the bytes of an attachment that stand in a string: a data URL
// in any member, or base64 in one called data, base64, bytes or content. It
// returns the URL's media type and how many bytes are encoded.
func embedded(name string, value []byte) (mediaType string, size int64, ok bool) {
	if kindOf(value) != isString {
		return "", 0, false
	}
	text := inside(value)
	if rest, is := bytes.CutPrefix(text, []byte("data:")); is {
		head, data, cut := bytes.Cut(rest, []byte(","))
		head, is64 := bytes.CutSuffix(head, []byte(";base64"))
		if !cut || !is64 {
			return "", 0, false
		}
		head, _, _ = bytes.Cut(head, []byte(";"))
		// In JSON a slash may be escaped.
		size, ok = decodedLen(data)
		return strings.ReplaceAll(string(head), `\/`, "/"), size, ok
	}
	switch name {
	case "data", "base64", "bytes", "content":
		size, ok = decodedLen(text)
		return "", size, ok
	}
	return "", 0, false
}

// decodedLen returns how many bytes base64 stands for, in either alphabet, with
// or without padding. ok is false if it is no base64.
func decodedLen(text []byte) (n int64, ok bool) {
	digits := int64(0)
	for i, c := range text {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '+', c == '/', c == '-', c == '_':
			digits++
		case c == '\\' && i+1 < len(text) && text[i+1] == '/': // an escaped slash
		case c == '=' && len(text)-i <= 2:
		default:
			return 0, false
		}
	}
	return digits * 3 / 4, digits > 0
}
