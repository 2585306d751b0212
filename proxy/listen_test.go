package proxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
)

// trusting returns a client's configuration that trusts the certificate in c.
func trusting(t *testing.T, c *tls.Config, name string) *tls.Config {
	t.Helper()
	cert, err := x509.ParseCertificate(c.Certificates[0].Certificate[0])
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return &tls.Config{RootCAs: pool, ServerName: name}
}

// R05: a host name is bound on all of its addresses, on one port, or not at all.
func TestListen(t *testing.T) {
	ctx := context.Background()
	ls, loopback, err := Listen(ctx, "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	if !loopback {
		t.Error("localhost is not taken for loopback")
	}
	port := ls[0].Addr().(*net.TCPAddr).Port
	for _, l := range ls {
		if got := l.Addr().(*net.TCPAddr).Port; got != port || got == 0 {
			t.Errorf("ports differ: %v", l.Addr())
		}
	}
	// P07: a port that is taken is an error that says so.
	_, port2, _ := net.SplitHostPort(ls[len(ls)-1].Addr().String())
	if _, _, err := Listen(ctx, "localhost:"+port2); err == nil || !strings.Contains(err.Error(), "in use") || !strings.Contains(err.Error(), port2) {
		t.Errorf("a taken port: %v", err)
	}
	for _, l := range ls[1:] { // taken in one family only
		l.Close()
	}
	if len(ls) > 1 {
		if half, _, err := Listen(ctx, "localhost:"+port2); err == nil {
			t.Errorf("half a listener: %v", half)
		}
	}
	ls[0].Close()

	if ls, loopback, err = Listen(ctx, ":0"); err != nil || loopback {
		t.Errorf("all addresses: loopback %v, %v", loopback, err)
	} else {
		ls[0].Close()
	}
	for _, bad := range []string{"8080", "localhost", "no-such-name.invalid:0", "127.0.0.1:99999"} {
		if _, _, err := Listen(ctx, bad); err == nil || !strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestLoadTLS(t *testing.T) {
	if _, err := LoadTLS("no.pem", "no.key"); err == nil || !strings.Contains(err.Error(), `"no.pem"`) {
		t.Errorf("missing files: %v", err)
	}
}

func TestConfigNamesTheField(t *testing.T) {
	for _, test := range []struct {
		upstream string
		change   func(*Config)
		want     string
	}{
		{"ftp://a", nil, "Upstream"},
		{"http://", nil, "no host"},
		{"http://a/b", nil, "path"},
		{"http://u:p@a", nil, "credentials"},
		{"http://a", func(c *Config) { c.Upstream = nil }, "Upstream"},
		{"http://a", func(c *Config) { c.Sink = nil }, "Sink"},
		{"http://a", func(c *Config) { c.BodyLimit = -1 }, "BodyLimit"},
		{"http://a", func(c *Config) { c.Origin = "app" }, "Origin"},
		{"http://a", func(c *Config) { c.Gate, c.KeepCompression = gateFunc(nil), true }, "KeepCompression"},
	} {
		u := parse(t, test.upstream)
		c := Config{Upstream: u, Sink: newMemory()}
		if test.change != nil {
			test.change(&c)
		}
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "u:p@") {
			t.Errorf("%s: %v, want %q in it", test.upstream, err, test.want)
		}
	}
}
