package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Names of the files in the directory of a control plane that both processes use.
const (
	caFile     = "ca.crt"
	serverCert = "server.crt"
	serverKey  = "server.key"
	clientCert = "client.crt"
	clientKey  = "client.key"
	tokenKey   = "service-account.key"
)

// authority signs the certificates of one control plane, which are valid for one day. Its key is in memory only.
type authority struct {
	cert    *x509.Certificate
	certPEM []byte
	key     *ecdsa.PrivateKey
}

// newAuthority creates an authority and writes the files that the servers need.
func newAuthority(dir string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	ca, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "plimsoll-control-plane"}, key)
	if err != nil {
		return nil, err
	}
	a := &authority{key: key, cert: ca, certPEM: encode(ca.Raw)}
	server := certificate(pkix.Name{CommonName: "localhost"})
	server.DNSNames, server.IPAddresses = []string{"localhost"}, []net.IP{net.IPv4(127, 0, 0, 1)}
	serverPEM, serverKeyPEM, err := a.sign(server)
	if err != nil {
		return nil, err
	}
	adminCert, adminKey, err := a.client("control-plane", []string{"system:masters"})
	if err != nil {
		return nil, err
	}
	_, tokens, err := a.client("service-accounts", nil)
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		caFile: a.certPEM, serverCert: serverPEM, serverKey: serverKeyPEM, clientCert: adminCert, clientKey: adminKey, tokenKey: tokens,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// client returns the certificate and key of a user.
func (a *authority) client(user string, groups []string) (certificatePEM, key []byte, err error) {
	return a.sign(certificate(pkix.Name{CommonName: user, Organization: groups}))
}

// sign creates a key and signs a certificate for it.
func (a *authority) sign(template *x509.Certificate) (certificatePEM, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, private.Public(), a.key)
	if err != nil {
		return nil, nil, err
	}
	key, err = keyutil.MarshalPrivateKeyToPEM(private)
	return encode(der), key, err
}

// encode returns a certificate in PEM.
func encode(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der})
}

// certificate returns the template of a certificate.
func certificate(subject pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return &x509.Certificate{
		Subject: subject, SerialNumber: serial,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
}
