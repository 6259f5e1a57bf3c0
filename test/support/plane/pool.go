package plane

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
)

// startedMessage begins the line that is written to standard error for each control plane that is started.
const startedMessage = "started a control plane for "

// pool has the control planes of a test binary. A test takes one that no other test uses, so that a package whose tests do not run in
// parallel starts as many as its most demanding test uses at once.
type pool struct {
	mu   sync.Mutex
	free []*member
	all  []*member
}

// member is a control plane of the pool.
type member struct {
	*controlplane.ControlPlane
	config *rest.Config
	// arguments are the additional flags of the API server.
	arguments []string
	// base has the keys of the objects that exist before the first test.
	base map[key]bool
	// crds has the hashes of the CRDs by name.
	crds map[string]string
}

var planes pool

// Main runs the tests of a package that uses control planes, and returns the exit code.
func Main(m *testing.M) int {
	controlplane.RunIfChild()
	defer planes.stop()
	return m.Run()
}

// Start returns a control plane with administrator access for the duration of the test. It is empty except for the CRDs of the files.
func Start(t testing.TB, options controlplane.Options, crds ...string) (*controlplane.ControlPlane, *rest.Config) {
	t.Helper()
	taken, err := planes.take(t.Context(), t.Name(), options)
	must.Succeed(t, err)
	t.Cleanup(func() { planes.release(taken) })
	if err := taken.reset(t.Context(), crds); err != nil {
		t.Fatalf("preparing the control plane: %v", err)
	}
	return taken.ControlPlane, rest.CopyConfig(taken.config)
}

// take returns a free control plane with the options, or starts one.
func (p *pool) take(ctx context.Context, test string, options controlplane.Options) (*member, error) {
	p.mu.Lock()
	i := slices.IndexFunc(p.free, func(m *member) bool { return slices.Equal(m.arguments, options.APIServerArgs) })
	if i >= 0 {
		taken := p.free[i]
		p.free = slices.Delete(p.free, i, i+1)
		p.mu.Unlock()
		return taken, nil
	}
	p.mu.Unlock()
	fmt.Fprintln(os.Stderr, startedMessage+test, strings.Join(options.APIServerArgs, " "))
	// The control plane outlives the test.
	cp, err := controlplane.Start(context.WithoutCancel(ctx), options)
	if err != nil {
		return nil, err
	}
	started := &member{ControlPlane: cp, arguments: options.APIServerArgs, crds: map[string]string{}}
	p.mu.Lock()
	p.all = append(p.all, started)
	p.mu.Unlock()
	if started.config, err = cp.Config("test", "system:masters"); err != nil {
		return nil, err
	}
	if err := started.awaitService(ctx); err != nil {
		return nil, err
	}
	objects, err := started.objects(ctx)
	if err != nil {
		return nil, err
	}
	started.base = map[key]bool{}
	for _, object := range objects {
		started.base[object.key] = true
	}
	return started, nil
}

// awaitService waits until the API server has created its own service, which it does only after it has become ready: a snapshot that a
// test takes before has one object fewer than the next.
func (m *member) awaitService(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(m.unlimited())
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, resetTimeout, true, func(ctx context.Context) (bool, error) {
		_, err := client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, ownService, metav1.GetOptions{})
		return err == nil, nil
	})
}

// release makes a control plane available to other tests, unless its servers have exited.
func (p *pool) release(m *member) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-m.Exited():
	default:
		p.free = append(p.free, m)
	}
}

// stop stops all control planes.
func (p *pool) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.all {
		m.Stop()
	}
}
