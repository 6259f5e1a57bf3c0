package integration

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
)

// encodePair returns a certificate and its key as files have them.
func encodePair(t *testing.T, pair tls.Certificate) (cert, key string) {
	t.Helper()
	raw, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
}
