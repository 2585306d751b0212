package live

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

const (
	// maxSocket is how long a socket's path may be. Linux has room for 107 bytes,
	// the BSDs for 103.
	maxSocket = 103
	// dialTimeout is for a process on the same machine, which may be stopped.
	dialTimeout = 500 * time.Millisecond
)

// Listener is where the readers of one tape come in. It is a net.Listener; the
// socket is removed when it is closed.
type Listener struct {
	net.Listener
	file  string // to be removed, "" if the listener does so
	token string // that requests must have, "" for none
}

// Listen makes the socket of the tape at path, which must be there. A socket that
// nobody answers is replaced; anything else of its name is left alone, and an
// error.
func Listen(path string) (*Listener, error) {
	name, err := socketName(path)
	if err != nil {
		return nil, fmt.Errorf("share tape %q: %w", path, err)
	}
	listen := listenUnix
	if !haveUnix() {
		listen = listenTCP
	}
	l, err := listen(name)
	if err != nil {
		return nil, fmt.Errorf("share tape %q: %w", path, err)
	}
	return l, nil
}

// Close stops listening and removes the socket.
func (l *Listener) Close() error {
	if l.file != "" {
		os.Remove(l.file)
	}
	return l.Listener.Close()
}

func haveUnix() bool {
	switch runtime.GOOS {
	case "windows", "plan9", "js", "wasip1":
		return false
	}
	return true
}

// socketName returns the name of a tape's socket, the same for all who mean the
// same file.
func socketName(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return "", err
	}
	if name := path + ".sock"; len(name) <= maxSocket || !haveUnix() {
		return name, nil
	}
	folder, err := socketFolder()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(path))
	return filepath.Join(folder, "tapedeck-"+hex.EncodeToString(sum[:8])+".sock"), nil
}

// socketFolder returns the folder for sockets with long names, which must be the
// user's own.
func socketFolder() (string, error) {
	if folder := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(folder) && len(folder) < maxSocket-40 {
		if info, err := os.Stat(folder); err == nil && info.IsDir() {
			return folder, nil
		}
	}
	folder := filepath.Join(os.TempDir(), "tapedeck-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(folder)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || info.Mode().Perm() != 0o700 || !isMine(info) {
		return "", fmt.Errorf("folder %q must be yours and of mode 0700; set XDG_RUNTIME_DIR to another", folder)
	}
	return folder, nil
}

func listenUnix(name string) (*Listener, error) {
	l, err := net.Listen("unix", name)
	if err != nil {
		// Somebody is there, or was.
		info, serr := os.Lstat(name)
		if serr != nil {
			return nil, err
		}
		if info.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("%q is no socket; remove it", name)
		}
		if answers("unix", name) {
			return nil, fmt.Errorf("another process answers at %q", name)
		}
		if err := os.Remove(name); err != nil {
			return nil, err
		}
		if l, err = net.Listen("unix", name); err != nil {
			return nil, err
		}
	}
	if err := os.Chmod(name, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Listener{Listener: l}, nil
}

func answers(network, address string) bool {
	conn, err := net.DialTimeout(network, address, dialTimeout)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// place is where to find a tape's process, as it is written to a file where
// there are no Unix sockets.
type place struct {
	Address string `json:"address"`
	Token   string `json:"token"`
}

func listenTCP(name string) (*Listener, error) {
	if old, err := readPlace(name); err == nil {
		if answers("tcp", old.Address) {
			return nil, fmt.Errorf("another process answers at %s, as %q says", old.Address, name)
		}
		if err := os.Remove(name); err != nil {
			return nil, err
		}
	}
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("%q is there and names no process; remove it", name)
	}
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, file.Close(), os.Remove(name))
	}
	p := place{Address: l.Addr().String(), Token: rand.Text()}
	err = errors.Join(json.NewEncoder(file).Encode(p), file.Close())
	if err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(name))
	}
	return &Listener{Listener: l, file: name, token: p.Token}, nil
}

var errPlace = errors.New("it names no process")

// readPlace reads where a tape's process listens. The address must be a loopback
// one: the token goes nowhere else.
func readPlace(name string) (p place, err error) {
	info, err := os.Lstat(name)
	if err != nil {
		return p, err
	}
	if !info.Mode().IsRegular() || info.Size() > 1<<10 {
		return p, fmt.Errorf("%q: %w", name, errPlace)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil || !strings.HasPrefix(p.Address, "127.0.0.1:") {
		return p, fmt.Errorf("%q: %w", name, errPlace)
	}
	return p, nil
}
