package loadwatcher

import (
	"bytes"
	"crypto/tls"
	"os"
	"sync"
)

// certificate is a server certificate in files, which are read for every handshake. While the files do not
// match, because certificate and key are not replaced at the same time, the previous certificate is used.
type certificate struct {
	certFile, keyFile string

	mu        sync.Mutex
	cert, key []byte
	pair      *tls.Certificate
}

// get is the hook tls.Config.GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return c.previous(err)
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return c.previous(err)
	}
	if c.pair != nil && bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return c.pair, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return c.previous(err)
	}
	c.cert, c.key, c.pair = cert, key, &pair
	return c.pair, nil
}

// previous returns the previous certificate, or the error if there is none.
func (c *certificate) previous(err error) (*tls.Certificate, error) {
	if c.pair != nil {
		return c.pair, nil
	}
	return nil, err
}
