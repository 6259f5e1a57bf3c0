// Package pictures has what the programs that draw pictures of the demo share.
package pictures

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/plimsoll-k8s/plimsoll/internal/embedded/controlplane"
)

// Main runs a program with the arguments of its usage, without the logs of the scheduler and the controllers, until it ends or is
// interrupted. It exits with 2 for other numbers of arguments, and with 1 after an error.
func Main(run func(ctx context.Context, arguments []string) error, usage ...string) {
	controlplane.RunIfChild()
	name := filepath.Base(os.Args[0])
	if len(os.Args) != 1+len(usage) {
		fmt.Fprintf(os.Stderr, "usage: %s %s\n", name, strings.Join(usage, " "))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := discardLogs()
	if err == nil {
		err = run(ctx, os.Args[1:])
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// discardLogs discards the logs of the scheduler and the controllers.
func discardLogs() error {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := errors.Join(flags.Set("logtostderr", "false"), flags.Set("stderrthreshold", "FATAL")); err != nil {
		return err
	}
	klog.SetOutput(io.Discard)
	ctrl.SetLogger(klog.NewKlogr())
	return nil
}
