// Command nodes runs a cluster with real kubelets on this machine until it is interrupted.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
	"github.com/plimsoll-k8s/plimsoll/lab/nodes/realnodes"
)

const usage = `Runs a Kubernetes cluster with real kubelets on this machine, in namespaces of its own, until it is interrupted (Ctrl-C).
It needs root, and changes nothing outside of its namespaces.

Usage:
  nodes [flags]                run a cluster
  nodes check                  print what this machine lacks to run one; the exit code is 2 if it lacks anything
  nodes enter [-cluster ID] [COMMAND ...]
                               run a command, or a shell, in the namespaces of a running cluster, with its kubeconfig;
                               if several run, ID chooses one: without it, they are listed

Examples:
  nodes -nodes 4 -cpu 300
  nodes enter kubectl get nodes
  nodes enter kubectl run try --image=localhost/work:1 --image-pull-policy=Never -- burn -cpu 120

Flags:
`

func main() {
	controlplane.RunIfChild()
	realnodes.RunIfChild()
	options := realnodes.Options{}
	flags := flag.NewFlagSet("nodes", flag.ExitOnError)
	flags.IntVar(&options.Nodes, "nodes", 4, "number of nodes")
	flags.IntVar(&options.CPU, "cpu", 300, "millicores of each node for pods")
	flags.IntVar(&options.Memory, "memory", 1024, "MiB of each node for pods")
	flags.StringVar(&options.Bin, "bin", "bin/nodes", "folder of the programs")
	flags.Usage = func() { fmt.Fprint(os.Stderr, usage); flags.PrintDefaults() }
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "check":
			if err := realnodes.CheckMachine(); err != nil {
				fail(2, err)
			}
			exit(nil)
		case "enter":
			exit(enter(os.Args[2:]))
		}
	}
	_ = flags.Parse(os.Args[1:])
	if flags.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "error: unknown argument %q\nRun 'nodes -h' for usage.\n", flags.Arg(0))
		os.Exit(2)
	}
	var err error
	if options.Bin, err = filepath.Abs(options.Bin); err == nil {
		err = options.Check()
	}
	if err != nil {
		fail(2, err)
	}
	realnodes.Enter()
	exit(up(options))
}

func fail(code int, err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(code)
}

func exit(err error) {
	if err != nil {
		fail(1, err)
	}
	os.Exit(0)
}

// up runs a cluster until a signal arrives.
func up(options realnodes.Options) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	start := time.Now()
	fmt.Printf("starting %d nodes of %d millicores and %d MiB ...\n", options.Nodes, options.CPU, options.Memory)
	c, err := realnodes.Start(ctx, options)
	if err != nil {
		return err
	}
	defer c.Stop()
	fmt.Printf("ready after %.1f s. In another terminal, as root:\n\n  %s enter kubectl get nodes\n\nCtrl-C stops everything.\n",
		time.Since(start).Seconds(), os.Args[0])
	<-ctx.Done()
	return nil
}

// enter replaces this process by a command in the namespaces of a cluster.
func enter(args []string) error {
	flags := flag.NewFlagSet("enter", flag.ExitOnError)
	id := flags.String("cluster", "", "ID of the cluster")
	_ = flags.Parse(args)
	command := flags.Args()
	if len(command) == 0 {
		command = []string{"bash"}
	}
	cluster, err := realnodes.Choose(*id)
	if err != nil {
		return err
	}
	path, err := exec.LookPath("nsenter")
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	target := []string{"nsenter", "--target", strconv.Itoa(cluster.Inside), "--net", "--mount", "--pid", "--wdns=" + mustGetwd()}
	return syscall.Exec(path, append(target, command...), append(os.Environ(), "KUBECONFIG="+cluster.Kubeconfig(),
		"PATH="+filepath.Dir(self)+":"+os.Getenv("PATH")))
}

func mustGetwd() string {
	dir, err := os.Getwd()
	if err != nil {
		return "/"
	}
	return dir
}
