package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
)

// explain says why the gateway could not be asked, and what to do.
func explain(gateway url.URL, err error) string {
	address := gateway.Scheme + "://" + gateway.Host
	return fmt.Sprintf("no answer from the gateway at %s: %s (%s)", address, advice(gateway, err), reason(err))
}

// reason is err without the parts that only net/http's authors need.
func reason(err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

func advice(gateway url.URL, err error) string {
	var (
		dns      *net.DNSError
		unknown  x509.UnknownAuthorityError
		hostname x509.HostnameError
		invalid  x509.CertificateInvalidError
		cert     *tls.CertificateVerificationError
		notTLS   tls.RecordHeaderError
		timeout  net.Error
		alert    tls.AlertError
	)
	switch {
	case errors.As(err, &unknown):
		return "its certificate is not trusted: name the authority that signed it with --ca, or accept any with -k (--insecure)"
	case errors.As(err, &hostname):
		return "its certificate is for another name: use that name as the upstream, or accept any with -k (--insecure)"
	case errors.As(err, &invalid), errors.As(err, &cert):
		return "its certificate is not valid: accept any with -k (--insecure), or name an authority with --ca"
	case errors.As(err, &notTLS), errors.Is(err, http.ErrSchemeMismatch):
		return "it does not speak TLS on this port: use http:// for the upstream"
	case errors.As(err, &dns):
		return fmt.Sprintf("its name %q cannot be resolved: check the upstream's spelling", dns.Name)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: start it, or check the upstream's port"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE):
		return "it closed the connection without an answer: look into its log"
	case errors.As(err, &alert):
		return "it refused the TLS handshake: look into its log"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "it did not answer in time: check that it can be reached from here"
	case strings.Contains(err.Error(), "malformed HTTP"):
		if gateway.Scheme == "http" && strings.Contains(err.Error(), `\x15\x03`) {
			return "it speaks TLS on this port: use https:// for the upstream"
		}
		return "it does not speak HTTP on this port: check the upstream's port"
	}
	return "check that it can be reached from here"
}

// fault names err as a connection's end, for the tape.
func fault(err error) string {
	switch {
	case errors.Is(err, syscall.ECONNRESET):
		return "connection reset"
	case errors.Is(err, syscall.EPIPE):
		return "connection closed while it was written to"
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "ended in the middle"
	case errors.Is(err, io.EOF):
		return "ended without a word"
	}
	return reason(err)
}
