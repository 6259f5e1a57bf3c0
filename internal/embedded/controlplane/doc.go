// Package controlplane runs a real Kubernetes control plane on this machine:
// etcd, kube-apiserver, the controllers of Deployments, ReplicaSets and Jobs,
// and a stand-in for the kubelets of simulated nodes. The demo and the
// integration tests run against it; nothing has to be installed.
//
// Everything listens on 127.0.0.1, on ports that the system chooses, behind
// certificates made for the occasion. The servers run in a child process (the
// calling program itself, started again), so that several control planes can
// live side by side, each with its own global state, and so that all of it is
// gone when it ends: when Stop is called, and also when the parent dies, because
// the child ends as soon as its standard input does. The caller's main, or
// TestMain, must call RunIfChild first.
//
// What a cluster has and this has not: a garbage collector, service accounts
// in pods, a network, and containers.
package controlplane
