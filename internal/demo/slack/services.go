package slack

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/plimsoll-k8s/plimsoll/config/crd"
	"github.com/plimsoll-k8s/plimsoll/internal/controllers/slack"
	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/internal/kube"
)

// systemNamespace is the namespace of placeholders.
const systemNamespace = "plimsoll-system"

// services are the autoscaler and, unless the cluster is external, the slack controller.
type services struct {
	*cluster
	// ctx ends when the services stop. If one of them has exited by itself, the reason is its cause.
	ctx     context.Context
	stop    context.CancelCauseFunc
	running sync.WaitGroup
}

// bind returns a context that also ends, with the same cause, when the services stop.
func (s *services) bind(ctx context.Context) (_ context.Context, unbind func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	unregister := context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
	return ctx, func() {
		unregister()
		cancel(nil)
	}
}

// start starts the services unless they run. They run until Stop is called or ctx ends.
func (d *Demo) start(ctx context.Context) (*services, error) {
	if d.services != nil {
		return d.services, nil
	}
	if !d.env.IsExternal() {
		if err := d.install(ctx); err != nil {
			return nil, err
		}
	}
	api, err := client.New(d.env.Access, client.Options{Scheme: kube.Scheme()})
	if err != nil {
		return nil, err
	}
	s := &services{cluster: &cluster{Cluster: d.env.Cluster, api: api}}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	if !d.env.IsExternal() {
		err = d.startController(s)
	}
	if err == nil {
		s.autoscaler, err = d.startAutoscaler(s.ctx, api)
	}
	if err != nil {
		s.stop(err)
		s.running.Wait()
		return nil, err
	}
	s.running.Go(func() {
		defer s.autoscaler.stop()
		select {
		case <-s.autoscaler.exited:
			s.stop(errors.New("the autoscaler has exited"))
		case <-s.ctx.Done():
		}
	})
	d.services = s
	return s, nil
}

// Stop stops the controller and the autoscaler, if they have been started, and waits for them.
func (d *Demo) Stop() {
	if s := d.services; s != nil {
		s.stop(nil)
		s.running.Wait()
	}
}

// Await waits until ctx ends and returns nil, or until the controller or the autoscaler exits by
// itself, and returns the reason. It must be called after Run or Play.
func (d *Demo) Await(ctx context.Context) error {
	s := d.services
	select {
	case <-ctx.Done():
	case <-s.ctx.Done():
		if ctx.Err() == nil {
			return context.Cause(s.ctx)
		}
	}
	return nil
}

// install installs the CRDs and the namespace of placeholders.
func (d *Demo) install(ctx context.Context) error {
	manifests := [][]byte{standInBuffers}
	if d.karpenter != nil {
		var err error
		if manifests, err = d.karpenter.crds(); err != nil {
			return err
		}
	}
	if err := controlplane.InstallCRDs(ctx, d.env.Access, append(manifests, crd.ResourceSlacks)...); err != nil {
		return err
	}
	namespace := &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: systemNamespace}}
	_, err := d.env.Client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	return err
}

// startController starts the slack controller. If it exits before the services stop, they stop.
func (d *Demo) startController(s *services) error {
	m, err := d.env.NewManager()
	if err != nil {
		return err
	}
	recorder := m.GetEventRecorder("plimsoll-controller")
	controller := slack.New(m.GetClient(), recorder, d.env.Registry, systemNamespace, "")
	s.ahead = &atomic.Int64{}
	controller.SetClock(func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) })
	if err := controller.Register(m); err != nil {
		return err
	}
	s.running.Go(func() {
		err := m.Start(s.ctx)
		s.stop(errors.Join(errors.New("the slack controller has exited"), err))
	})
	return nil
}

// startAutoscaler starts the autoscaler.
func (d *Demo) startAutoscaler(ctx context.Context, api client.Client) (*runningAutoscaler, error) {
	if d.karpenter == nil {
		return startStandIn(ctx, api), nil
	}
	return d.karpenter.start(ctx, api, d.env.Kubeconfig(), d.log)
}
