package proxy

import "tapedeck/protocol/capture"

type gateFunc func(f *capture.Frame) Verdict

func (g gateFunc) Judge(f *capture.Frame) Verdict { return g(f) }
