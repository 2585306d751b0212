package proxy

func upgradeRequest(target string, fields ...string) string {
	s := "GET " + target + " HTTP/1.1\r\nHost: p\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for _, f := range fields {
		s += f + "\r\n"
	}
	return s + "\r\n"
}
