package conversation

import "encoding/json"

// openingMessage reads the message that RUN_STARTED carries: its id, and the
// text of its content, as far as there is any. Its fields are not stated.
func openingMessage(body []byte) (id, content string) {
	if body == nil {
		return "", ""
	}
	var m struct {
		ID        string          `json:"id"`
		MessageID string          `json:"messageId"`
		Content   json.RawMessage `json:"content"`
	}
	if json.Unmarshal(body, &m) != nil {
		return "", ""
	}
	if id = m.ID; id == "" {
		id = m.MessageID
	}
	return id, contentText(m.Content)
}

// contentText returns the text of a message's content: the string that it is, or
// the texts of its parts joined.
func contentText(content []byte) string {
	var text string
	if json.Unmarshal(content, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(content, &parts) != nil {
		return ""
	}
	for _, p := range parts {
		text += p.Text
	}
	return text
}
