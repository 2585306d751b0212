package proxy

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Listen binds address, a host and a port, and returns a listener for each
// address that the host resolves to, all on one port: a client that takes the
// other family must not find another program, or nobody. Port 0 is any free
// one; the listeners' addresses tell which. Loopback is whether only this
// machine can connect.
func Listen(ctx context.Context, address string) (ls []net.Listener, loopback bool, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, false, fmt.Errorf("listen on %q: give a host and a port, such as localhost:8080", address)
	}
	hosts, loopback, err := addresses(ctx, host)
	if err != nil {
		return nil, false, fmt.Errorf("listen on %q: %w", address, err)
	}
	const tries = 8 // a free port of one family may be taken in the other
	for range tries {
		ls, err = listenAll(ctx, hosts, port)
		if err == nil || port != "0" || !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		err = fmt.Errorf("%w: end the program that listens there, or take another port (0 is any free one)", err)
	}
	if err != nil {
		return nil, false, fmt.Errorf("listen on %q: %w", address, err)
	}
	return ls, loopback, nil
}

// addresses returns the addresses of host, "" for all of this machine.
func addresses(ctx context.Context, host string) (hosts []string, loopback bool, err error) {
	if host == "" {
		return []string{""}, false, nil
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, false, err
	}
	loopback = true
	for _, a := range found {
		a = a.Unmap()
		loopback = loopback && a.IsLoopback()
		if s := a.String(); !slices.Contains(hosts, s) {
			hosts = append(hosts, s)
		}
	}
	return hosts, loopback, nil
}

// listenAll binds port on all of hosts, or none. A family that this machine does
// not have is left out, unless there is no other.
func listenAll(ctx context.Context, hosts []string, port string) (ls []net.Listener, err error) {
	defer func() {
		if err != nil {
			for _, l := range ls {
				l.Close()
			}
			ls = nil
		}
	}()
	var config net.ListenConfig
	var absent error
	for _, host := range hosts {
		l, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
		if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
			absent = err
			continue
		}
		if err != nil {
			return ls, err
		}
		ls = append(ls, l)
		if port == "0" {
			port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		}
	}
	if len(ls) == 0 {
		return nil, absent
	}
	return ls, nil
}

// LoadTLS reads the certificate and the key that the proxy shows its clients.
func LoadTLS(certFile, keyFile string) (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate %q and its key %q: %w", certFile, keyFile, err)
	}
	return serverTLS(pair), nil
}

// SelfSigned makes a certificate for localhost, the loopback addresses and the
// given hosts. It is kept in memory only and lasts for a year.
func SelfSigned(hosts ...string) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	now := time.Now()
	cert := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: "tapedeck, self-signed"},
		NotBefore:    now.Add(-time.Hour), // for clocks that are late
		NotAfter:     now.AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:     []string{"localhost"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			cert.IPAddresses = append(cert.IPAddresses, ip)
		} else if host != "" && host != "localhost" {
			cert.DNSNames = append(cert.DNSNames, host)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return serverTLS(tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}), nil
}

// WithTLS returns ls with TLS on each.
func WithTLS(ls []net.Listener, c *tls.Config) []net.Listener {
	secure := make([]net.Listener, len(ls))
	for i, l := range ls {
		secure[i] = tls.NewListener(l, c)
	}
	return secure
}

// serverTLS offers HTTP/1.1 only, which is what WebSockets need.
func serverTLS(pair tls.Certificate) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}
}
