package capture

import (
	"strings"
	"testing"
)

// An address that is written as data is read back as it was, the number of a
// first packet included; what people type is read too.
func TestAddress(t *testing.T) {
	for _, c := range []struct {
		address    Address
		text, says string
	}{
		{Address{}, "0", "0"},
		{Address{Position: 1042}, "1042", "1042"},
		{Address{Position: 1042, Packet: 1}, "1042.1", "1042"},
		{Address{Position: 1042, Packet: 3}, "1042.3", "1042.3"},
		{Address{Position: 1<<64 - 1, Packet: 12}, "18446744073709551615.12", "18446744073709551615.12"},
	} {
		text, err := c.address.MarshalText()
		if err != nil || string(text) != c.text || c.address.String() != c.says {
			t.Errorf("%+v is written as %q, %v and says %q; want %q and %q", c.address, text, err, c.address, c.text, c.says)
		}
		var back Address
		if err := back.UnmarshalText(text); err != nil || back != c.address {
			t.Errorf("%q is read as %+v, %v", text, back, err)
		}
		if typed, err := ParseAddress("#" + c.text); err != nil || typed != c.address {
			t.Errorf("#%s is read as %+v, %v", c.text, typed, err)
		}
	}
	for text, want := range map[string]string{
		"": "not a number", "x": "not a number", "-1": "not a number", "1.": "counted from 1", "1.0": "counted from 1", "1.x": "counted from 1",
	} {
		if a, err := ParseAddress(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is read as %+v, %v; want an error with %q", text, a, err, want)
		}
	}
}
