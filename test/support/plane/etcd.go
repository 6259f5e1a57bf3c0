package plane

import (
	"context"
	"fmt"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
)

// Compact removes the history of all objects from the etcd of a control plane up to the present revision.
func Compact(ctx context.Context, cp *controlplane.ControlPlane) error {
	client, err := etcdClient(ctx, cp)
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

// etcdClient returns a client of the etcd of a control plane.
func etcdClient(ctx context.Context, cp *controlplane.ControlPlane) (*clientv3.Client, error) {
	file := func(name string) string { return filepath.Join(cp.Dir, name) }
	tls, err := transport.TLSInfo{CertFile: file("client.crt"), KeyFile: file("client.key"), TrustedCAFile: file("ca.crt")}.ClientConfig()
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{Endpoints: []string{cp.Etcd}, TLS: tls, Context: ctx})
}
