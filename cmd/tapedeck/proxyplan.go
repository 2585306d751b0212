package main

import (
	"crypto/x509"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"tapedeck/player"
	"tapedeck/protocol"
	"tapedeck/protocol/capture"
	"tapedeck/protocol/conversation"
	"tapedeck/proxy"
	"tapedeck/recorder"
)

// proxyPlan is what the flags of the proxy command ask for, checked before
// anything is opened.
type proxyPlan struct {
	config   *proxy.Config
	scenario string // of the built-in gateway, if there is no upstream
	played   string // and what it says of itself
	tape     string
	writer   recorder.WriterOptions
	onError  string // relay or stop
	settings protocol.Settings
	judging  conversation.Options
	schemas  *protocol.Schemas
	gate     *enforcer
	tui      bool
}

// planProxy reads the flags.
func planProxy(c *cli.Context) (*proxyPlan, error) {
	plan := &proxyPlan{
		scenario: c.String("scenario"), tape: c.String("write"), onError: c.String("on-record-error"), tui: c.Bool("tui"),
		writer: recorder.WriterOptions{KeepSecrets: c.Bool("keep-secrets"), Redact: c.StringSlice("redact")},
	}
	if plan.onError != "relay" && plan.onError != "stop" {
		return nil, usageError("proxy: --on-record-error is relay or stop, not %q", plan.onError)
	}
	var err error
	if plan.config, err = proxyConfig(c); err != nil {
		return nil, err
	}
	if plan.settings, err = settings(c); err != nil {
		return nil, err
	}
	if plan.judging, plan.schemas, err = judgeOptions(c); err != nil {
		return nil, err
	}
	if plan.gate, err = newEnforcer(c.String("enforce"), plan.settings, plan.schemas); err != nil {
		return nil, err
	}
	if plan.gate != nil {
		plan.config.Gate = plan.gate
	}
	if plan.config.Upstream == nil {
		return plan, nil
	}
	whole := *plan.config
	whole.Sink = &recording{}
	if err := whole.Validate(); err != nil {
		return nil, usageError("proxy: %v", err)
	}
	return plan, nil
}

// startGateway starts the built-in gateway, if there is no other.
func (plan *proxyPlan) startGateway() (*backstage, error) {
	if plan.config.Upstream != nil {
		return nil, nil
	}
	behind, err := startBackstage(player.Config{Scenario: plan.scenario})
	if err != nil {
		return nil, err
	}
	plan.played = fmt.Sprintf("scenario %s, seed %d", plan.scenario, behind.player.Seed())
	plan.config.Upstream, err = url.Parse(behind.url)
	return behind, err
}

// startRecording begins the session, and makes it the proxy's sink.
func (plan *proxyPlan) startRecording(view *liveView, d *door, failed func(error)) (*recording, error) {
	plan.writer.OnError = failed
	rec, err := startRecording(recordingOptions{
		path:    plan.tape,
		session: capture.Session{Source: "proxy", Gateway: plan.config.Upstream.Redacted(), Listen: d.url, Played: plan.played},
		writer:  plan.writer,
		judge:   plan.judging,
		watch:   view.watch,
	})
	if err != nil {
		return nil, err
	}
	rec.gate = plan.gate
	plan.config.Sink, plan.config.FirstPosition, plan.config.Start = rec, rec.session.First, rec.start
	return rec, nil
}

// proxyConfig reads what the flags say about the way through.
func proxyConfig(c *cli.Context) (*proxy.Config, error) {
	limit, err := parseSize(c.String("body-limit"))
	if err != nil {
		return nil, usageError("proxy: --body-limit: %v", err)
	}
	cfg := &proxy.Config{
		BodyLimit: limit, Origin: c.String("origin"), KeepCookies: c.Bool("keep-cookies"),
		KeepCompression: c.Bool("keep-compression"), Insecure: c.Bool("insecure"), Via: http.ProxyFromEnvironment,
	}
	if address := c.String("upstream"); address != "" {
		if cfg.Upstream, err = parseGateway(address); err != nil {
			return nil, err
		}
	}
	if file := c.String("ca"); file != "" {
		if cfg.RootCAs, err = authorities(file); err != nil {
			return nil, err
		}
	}
	return cfg, nil
}

// parseGateway reads the gateway's address, which may lack its scheme.
func parseGateway(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil {
		return nil, usageError("proxy: --upstream: %v", err)
	}
	return u, nil
}

func authorities(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read authorities: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(pem) {
		return nil, usageError("proxy: --ca: no certificate in %q; it must be PEM", file)
	}
	return pool, nil
}
