package plimsoll

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/plimsoll-k8s/plimsoll/test/support/eventually"
	"github.com/plimsoll-k8s/plimsoll/test/support/must"
	"github.com/plimsoll-k8s/plimsoll/test/support/program"
)

// TestWriters starts two processes that record into one directory: the second one ends with an error that names the first one. After the
// first one is killed, another one can start.
func TestWriters(t *testing.T) {
	self, err := os.Executable()
	must.Succeed(t, err)
	// The processes wait for an API server that does not exist.
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	err = os.WriteFile(kubeconfig, []byte("clusters: [{name: a, cluster: {server: 'http://127.0.0.1:1'}}]\n"+
		"contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"), 0o600)
	must.Succeed(t, err)
	writers := map[string][]string{
		"record": {"record", "--follow", "-o"},
		"shadow": {"shadow", "--listen", "127.0.0.1:0", "--profile", "default", "--folder"},
	}
	for first, firstArgs := range writers {
		for second, secondArgs := range writers {
			t.Run(first+", then "+second, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				folder := filepath.Join(t.TempDir(), "recordings")
				start := func(args []string) (*exec.Cmd, *program.Output) {
					cmd, out := exec.CommandContext(ctx, self), &program.Output{}
					cmd.Args = append([]string{"plimsoll"}, append(args, folder, "--kubeconfig", kubeconfig)...)
					cmd.Stdout, cmd.Stderr = out, out
					must.Succeed(t, cmd.Start())
					return cmd, out
				}
				lock := func(args []string) *exec.Cmd {
					cmd, out := start(args)
					eventually.True(t, "the directory is not locked", out, func(context.Context) (bool, error) {
						holder, err := os.ReadFile(filepath.Join(folder, "writer"))
						return err == nil && strings.Contains(string(holder), fmt.Sprintf("process %d ", cmd.Process.Pid)), nil
					})
					return cmd
				}
				kill := func(cmd *exec.Cmd) {
					if err := cmd.Process.Kill(); err != nil {
						t.Error(err)
					}
					_ = cmd.Wait() // killed
				}
				holder := lock(firstArgs)
				refused, out := start(secondArgs)
				want := fmt.Sprintf("%s: process %d on ", folder, holder.Process.Pid)
				if err := refused.Wait(); refused.ProcessState.ExitCode() != 1 || !strings.Contains(out.String(), want) ||
					!strings.Contains(out.String(), " has written to it since 20") {
					t.Errorf("%v\n%s\nwant %s", err, out, want)
				}
				kill(holder)
				kill(lock(secondArgs))
			})
		}
	}
}
