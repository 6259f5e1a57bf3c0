package controlplane

import (
	"context"
	"fmt"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Compact removes the history of all objects from etcd up to the present revision.
func (cp *ControlPlane) Compact(ctx context.Context) error {
	client, err := cp.etcdClient(ctx)
	if err != nil {
		return fmt.Errorf("connecting to etcd: %w", err)
	}
	defer func() { _ = client.Close() }()
	present, err := client.Get(ctx, "/registry", clientv3.WithCountOnly())
	if err != nil {
		return fmt.Errorf("reading the revision of etcd: %w", err)
	}
	if _, err := client.Compact(ctx, present.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		return fmt.Errorf("compacting etcd: %w", err)
	}
	return nil
}

// etcdClient returns a client of etcd.
func (cp *ControlPlane) etcdClient(ctx context.Context) (*clientv3.Client, error) {
	tls, err := transport.TLSInfo{
		CertFile: filepath.Join(cp.Dir, clientCert), KeyFile: filepath.Join(cp.Dir, clientKey),
		TrustedCAFile: filepath.Join(cp.Dir, caFile),
	}.ClientConfig()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{Endpoints: []string{cp.etcd}, TLS: tls, Context: ctx})
}
