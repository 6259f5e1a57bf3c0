// Package controlplane runs a Kubernetes control plane on this machine for the demo and the tests:
// etcd, kube-apiserver, the controllers of Deployments, ReplicaSets and Jobs, and simulated kubelets.
// Nothing has to be installed.
//
// All servers listen on free ports of 127.0.0.1 with generated certificates. They run in a child process,
// which is the calling program started again: several control planes can run at the same time, each with
// its own global state. The child exits when Stop is called, and also when the parent is killed, because
// that closes its standard input. The caller's main or TestMain must call RunIfChild first.
//
// The control plane has no garbage collector, no service accounts in pods, no network and no containers.
package controlplane
